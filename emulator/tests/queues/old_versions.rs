//! The signature of the first versions of the service.

use smalt_protocol::signing::shared_key::{Scheme, SigningInput, string_to_sign};
use smalt_protocol::{ApiVersion, Service};

use super::client::with_queue;
use crate::support::{ACCOUNT, config, request};

/// The signature of the first versions is today's Shared Key Lite.
#[tokio::test]
async fn first_versions_use_shared_key_lite() {
    let input = SigningInput {
        service: Service::Queue,
        scheme: Scheme::SharedKey,
        version: ApiVersion::V2009_07_17,
        method: "PUT",
        account: ACCOUNT,
        path: "/myqueue/messages",
        query: &[("messagettl".to_owned(), "3600".to_owned())],
        headers: &[
            ("Content-Length", "3900"),
            ("x-ms-date", "Mon, 27 Oct 2008 17:00:25 GMT"),
        ],
    };
    let lines = ["PUT", "", "", "", "x-ms-date:Mon, 27 Oct 2008 17:00:25 GMT"];
    let expected = format!("{}\n/{ACCOUNT}/myqueue/messages", lines.join("\n"));
    assert_eq!(string_to_sign(&input), expected);
}

/// Q17: a request from before there were versions, as the first description of the service shows
/// it: PUT with a raw body, a signed `x-ms-date`, and no version.
#[tokio::test]
async fn message_is_put_without_a_version() {
    let client = with_queue(config()).await;
    let date = client.now().rfc1123();
    let put = ("PUT", "/que/messages?messagettl=3600");
    let get = ("GET", "/que/messages?numofmessages=2&visibilitytimeout=60");
    for ((method, path), body, version, status, text) in [
        (put, "work", ApiVersion::V2009_07_17, 201, ""),
        (
            get,
            "",
            ApiVersion::V2009_09_19,
            200,
            "<MessageText>d29yaw==</MessageText>",
        ),
    ] {
        let length = body.len().to_string();
        let mut headers = vec![("x-ms-date", date.as_str()), ("content-length", &length)];
        if method == "PUT" {
            headers.push(("content-md5", "Z+ksh2WpvH+y0zXEWd6etQ=="));
        }
        let signed = client.under(version);
        let signed = signed.signature(method, &client.target(path), &headers);
        headers.push(("authorization", &signed));
        let answer = client
            .call(request(method, &client.url(path), &headers, body))
            .await;
        assert_eq!(answer.status, status, "{method}: {}", answer.text());
        assert!(answer.text().contains(text), "{}", answer.text());
    }
}
