//! Requests that break a rule of syntax.

use http::Method;
use smalt_model::vocabulary::Malformed;
use smalt_protocol::Service;

use super::request::Request;

pub(super) fn malformed(which: Malformed) -> Request {
    let put = |path: &str| Request::blob(Method::PUT, path);
    let queue = |method, path: &str| Request::new(Service::Queue, method, path);
    match which {
        Malformed::ContainerName => put("CAPITALS?restype=container"),
        Malformed::LeaseId => {
            Request::blob(Method::HEAD, "con0/b0").with("x-ms-lease-id", "no-guid")
        }
        Malformed::Date => {
            Request::blob(Method::GET, "con0/b0").with("if-modified-since", "yesterday")
        }
        Malformed::TwoConditions => Request::blob(Method::DELETE, "con0/b0")
            .with("if-match", "\"0x1\"")
            .with("if-none-match", "\"0x2\""),
        Malformed::LeaseDuration => put("con0/b0?comp=lease")
            .with("x-ms-lease-action", "acquire")
            .with("x-ms-lease-duration", "5"),
        Malformed::LeaseAction => put("con0/b0?comp=lease").with("x-ms-lease-action", "borrow"),
        Malformed::BlockId => put("con0/b0?comp=block&blockid=%21%21").body("data"),
        Malformed::BlobType => put("con0/b0").body("data"),
        Malformed::PageOfNone => {
            Request::blob(Method::GET, "con0?restype=container&comp=list&maxresults=0")
        }
        Malformed::TooManyMessages => queue(Method::GET, "que0/messages?numofmessages=33"),
        Malformed::VisibilityTimeout => {
            queue(Method::GET, "que0/messages?visibilitytimeout=604801")
        }
        Malformed::PageRange => put("con0/b0?comp=page")
            .with("x-ms-page-write", "clear")
            .with("x-ms-range", "bytes=0-255"),
        Malformed::PageBlobLength => put("con0/b0")
            .with("x-ms-blob-type", "PageBlob")
            .with("x-ms-blob-content-length", "513"),
        Malformed::TimeToLive => queue(Method::POST, "que0/messages?messagettl=0")
            .body("<QueueMessage><MessageText>x</MessageText></QueueMessage>"),
    }
}
