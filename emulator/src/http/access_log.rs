//! The access log on standard output, in the common log format, as Azurite writes it.
//!
//! Source: Azurite 3.37 with morgan's `common` format. Signatures are masked: Azurite logs them,
//! and anyone who has a signature can use it.

use std::io::{self, Write as _};
use std::net::IpAddr;
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;

use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response, Uri, Version};
use smalt_protocol::Timestamp;
use tokio::sync::oneshot;

use crate::masking;

/// Lines that may wait for a reader of standard output. Further lines are dropped, so that a
/// stalled reader does not block requests.
const LINES_WAITING: usize = 10_000;
/// Stands for the value of a signature.
const MASK: &str = "***";
/// Time limit for writing the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// A handle that sends lines to the writing thread.
#[derive(Clone, Debug)]
pub struct AccessLog(SyncSender<String>);

/// Waits for the end of the log, which comes when all clones of [`AccessLog`] are dropped.
#[derive(Debug)]
pub struct AccessLogEnd(oneshot::Receiver<()>);

impl AccessLog {
    /// Starts the writing thread.
    ///
    /// # Errors
    /// When the system cannot create a thread.
    pub fn start() -> io::Result<(AccessLog, AccessLogEnd)> {
        let (sender, lines) = mpsc::sync_channel::<String>(LINES_WAITING);
        let (ended, end) = oneshot::channel::<()>();
        let name = "smalt-access-log".to_owned();
        std::thread::Builder::new().name(name).spawn(move || {
            for line in lines {
                // A closed pipe is not an error.
                let _ = io::stdout().write_all(line.as_bytes());
            }
            // Fails when the server was dropped, so that nothing waits.
            let _ = ended.send(());
        })?;
        Ok((AccessLog(sender), AccessLogEnd(end)))
    }

    /// Logs one request and its response.
    pub(super) fn tell(&self, at: Timestamp, asked: &Asked, answer: Option<&Response<impl Sized>>) {
        let _ = self.0.try_send(line(at, asked, answer));
    }
}

impl AccessLogEnd {
    /// Waits until every line is written, for at most one second.
    pub async fn reached(self) {
        let _ = tokio::time::timeout(LAST_LINES, self.0).await;
    }
}

/// The parts of a request that a log line shows.
pub(super) struct Asked {
    peer: IpAddr,
    method: Method,
    uri: Uri,
    version: Version,
}

impl Asked {
    pub(super) fn of(request: &Request<impl Sized>, peer: IpAddr) -> Self {
        Asked {
            peer,
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
        }
    }
}

/// Formats a log line; `answer` is `None` when the connection was cut.
fn line(at: Timestamp, asked: &Asked, answer: Option<&Response<impl Sized>>) -> String {
    let status = answer.map_or("-".to_owned(), |answer| {
        answer.status().as_u16().to_string()
    });
    let length = answer.and_then(|answer| answer.headers().get(CONTENT_LENGTH)?.to_str().ok());
    // Azurite logs no length for a response without a body.
    let length = length.filter(|length| *length != "0");
    format!(
        "{} - - [{}] \"{} {} {:?}\" {status} {}\n",
        asked.peer,
        date(at),
        asked.method,
        masking::target(&asked.uri, MASK),
        asked.version,
        length.unwrap_or("-"),
    )
}

/// Formats a date such as `23/Nov/2026:05:35:19 +0000`.
fn date(at: Timestamp) -> String {
    let text = at.rfc1123();
    let mut parts = text.split(' ').skip(1);
    let mut next = || parts.next().unwrap_or_default();
    let (day, month, year, time) = (next(), next(), next(), next());
    format!("{day}/{month}/{year}:{time} +0000")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(target: &str, answer: Option<&Response<()>>) -> String {
        let request = Request::put(target).body(()).unwrap();
        let asked = Asked::of(&request, "127.0.0.1".parse().unwrap());
        line(Timestamp::from_unix_s(1_795_412_119), &asked, answer)
    }

    #[test]
    fn line_has_azurites_format() {
        let mut answer = Response::builder().status(201).body(()).unwrap();
        assert_eq!(
            logged("/devstoreaccount1/c?restype=container", Some(&answer)),
            "127.0.0.1 - - [23/Nov/2026:05:35:19 +0000] \
             \"PUT /devstoreaccount1/c?restype=container HTTP/1.1\" 201 -\n"
        );
        answer.headers_mut().insert(CONTENT_LENGTH, 0.into());
        assert!(logged("/a", Some(&answer)).ends_with("\"PUT /a HTTP/1.1\" 201 -\n"));
        answer.headers_mut().insert(CONTENT_LENGTH, 12.into());
        assert!(logged("/a", Some(&answer)).ends_with("\"PUT /a HTTP/1.1\" 201 12\n"));
        assert!(logged("/a", None).ends_with("\"PUT /a HTTP/1.1\" - -\n"));
    }

    #[test]
    fn signatures_are_masked() {
        for (target, shown) in [
            ("/c/b?sv=1&sig=s%3D&se=2", "/c/b?sv=1&sig=***&se=2"),
            ("/c/b?SIG=s%3D", "/c/b?SIG=***"),
            ("/c/b?s%69g=s%3D&a", "/c/b?s%69g=***&a"),
            ("/c/b?sigh=s&a=sig", "/c/b?sigh=s&a=sig"),
        ] {
            assert!(
                logged(target, None).contains(&format!("PUT {shown} ")),
                "{target}"
            );
        }
    }
}
