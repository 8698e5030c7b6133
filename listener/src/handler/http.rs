//! An HTTP endpoint as a handler: posts the body, and takes the verdict from the status.
//!
//! | answer | verdict |
//! | --- | --- |
//! | 2xx | ok |
//! | 409, 422 | reject |
//! | 408, 429, 503 | retry, after `Retry-After` when given |
//! | other 4xx | reject, or retry when so configured |
//! | 5xx, redirects, no answer, time-out | retry |
//!
//! The request has the headers `X-Message-Id`, `X-Message-Queue`, `X-Message-Dequeue-Count`,
//! `X-Message-Inserted` and, unless the message never expires, `X-Message-Expires`. Redirects are
//! not followed. Connections are kept and reused; a kept connection that the endpoint has closed
//! costs no attempt.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri, header};
use smalt_protocol::Timestamp;
use smalt_sleeve::{HyperTransport, HyperTransportSettings, TransportError};

use super::{Context, Handler, Message, Verdict};

/// Longest answer that is read, in bytes. Only the status and an excerpt are used.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;
/// Characters of the answer that go into the log and the poison queue.
const REASON_MAX_CHARS: usize = 200;

/// Verdict for a 4xx status without a meaning of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum On4xx {
    /// Reject: the message is at fault.
    #[default]
    Reject,
    /// Retry: the endpoint is at fault.
    Retry,
}

/// Why no message could be posted.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is not an absolute http or https URL.
    #[error("`{0}` is not an http:// or https:// URL")]
    Url(String),
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] TransportError),
}

/// Posts each message to a URL.
pub struct HttpHandler {
    uri: Uri,
    /// The `Host` header, which always has a port.
    host: String,
    content_type: String,
    on_4xx: On4xx,
    transport: HyperTransport,
}

impl HttpHandler {
    /// Creates a handler that posts to `url`. For https it trusts the public certificate
    /// authorities.
    pub fn new(url: &str, on_4xx: On4xx) -> Result<Self, ConnectError> {
        let wrong = || ConnectError::Url(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let host = HyperTransport::host_and_port(&uri).map_err(|_| wrong())?;
        let settings = HyperTransportSettings {
            // The listener ends a run that takes too long.
            connect_timeout: Duration::MAX,
            read_timeout: Duration::MAX,
            answer_bytes_max: ANSWER_BYTES_MAX,
            ..HyperTransportSettings::default()
        };
        Ok(HttpHandler {
            host,
            uri,
            content_type: "application/octet-stream".to_owned(),
            on_4xx,
            transport: HyperTransport::new(settings)?,
        })
    }

    /// Sets the `Content-Type`; the default is `application/octet-stream`.
    #[must_use]
    pub fn with_content_type(mut self, content_type: &str) -> Self {
        self.content_type = content_type.to_owned();
        self
    }

    fn request(&self, message: &Message) -> Result<Request<Bytes>, http::Error> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&self.uri)
            .header(header::HOST, &self.host)
            .header(header::CONTENT_TYPE, &self.content_type)
            .header("x-message-id", &message.id)
            .header("x-message-queue", &message.queue)
            .header("x-message-dequeue-count", message.dequeue_count)
            .header("x-message-inserted", message.inserted.iso_s());
        if message.expires != Timestamp::MAX {
            request = request.header("x-message-expires", message.expires.iso_s());
        }
        request.body(message.body.clone())
    }
}

#[async_trait]
impl Handler for HttpHandler {
    async fn handle(&self, message: &Message, ctx: &Context) -> Verdict {
        let request = match self.request(message) {
            Ok(request) => request,
            Err(error) => return Verdict::retry(format!("cannot build the request: {error}")),
        };
        let call = async {
            match self.transport.exchange(request).await {
                // The status is the verdict, whatever became of the body.
                Ok((head, body)) => {
                    let text = excerpt(&body.unwrap_or_default());
                    judge(head.status, &head.headers, &text, self.on_4xx)
                }
                Err(error) => Verdict::retry(error.to_string()),
            }
        };
        tokio::select! {
            biased;
            verdict = call => verdict,
            () = ctx.cancelled() => Verdict::retry("cancelled while waiting for the answer"),
        }
    }
}

fn judge(status: StatusCode, headers: &HeaderMap, text: &str, on_4xx: On4xx) -> Verdict {
    let reason = match text {
        "" => format!("HTTP {status}"),
        text => format!("HTTP {status}: {text}"),
    };
    let retry = |reason| Verdict::Retry {
        after: retry_after(headers),
        reason,
    };
    match status.as_u16() {
        200..=299 => Verdict::Ok,
        409 | 422 => Verdict::Reject { reason },
        408 | 429 | 503 => retry(reason),
        400..=499 => match on_4xx {
            On4xx::Reject => Verdict::Reject { reason },
            On4xx::Retry => retry(reason),
        },
        _ => Verdict::Retry {
            after: None,
            reason,
        },
    }
}

/// Parses `Retry-After`: seconds, or a date relative to the answer's own `Date`.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let now = headers.get(header::DATE)?.to_str().ok()?;
    let now = Timestamp::parse_rfc1123(now)?;
    Some(Timestamp::parse_rfc1123(value)?.since(now))
}

fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().take(REASON_MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                let name = header::HeaderName::from_static(name);
                (name, header::HeaderValue::from_static(value))
            })
            .collect()
    }

    fn kind(status: u16, on_4xx: On4xx) -> &'static str {
        let status = StatusCode::from_u16(status).unwrap();
        match judge(status, &HeaderMap::new(), "", on_4xx) {
            Verdict::Ok => "ok",
            Verdict::Reject { .. } => "reject",
            Verdict::Unable { .. } => "unable",
            Verdict::Retry { .. } => "retry",
        }
    }

    #[test]
    fn statuses_as_documented() {
        let table = [
            (200, "ok", "ok"),
            (204, "ok", "ok"),
            (302, "retry", "retry"),
            (400, "reject", "retry"),
            (404, "reject", "retry"),
            (408, "retry", "retry"),
            (409, "reject", "reject"),
            (422, "reject", "reject"),
            (429, "retry", "retry"),
            (500, "retry", "retry"),
            (503, "retry", "retry"),
        ];
        for (status, by_default, when_retried) in table {
            assert_eq!(kind(status, On4xx::Reject), by_default, "{status}");
            assert_eq!(kind(status, On4xx::Retry), when_retried, "{status}");
        }
    }

    #[test]
    fn retry_after_in_both_forms() {
        let seconds = headers(&[("retry-after", "7")]);
        assert_eq!(retry_after(&seconds), Some(Duration::from_secs(7)));
        let date = headers(&[
            ("retry-after", "Thu, 09 May 2019 00:58:59 GMT"),
            ("date", "Thu, 09 May 2019 00:57:59 GMT"),
        ]);
        assert_eq!(retry_after(&date), Some(Duration::from_secs(60)));
        assert_eq!(retry_after(&headers(&[("retry-after", "soon")])), None);
        let verdict = judge(
            StatusCode::SERVICE_UNAVAILABLE,
            &seconds,
            "full",
            On4xx::Reject,
        );
        let after = Duration::from_secs(7);
        let wanted = Verdict::retry_after(after, "HTTP 503 Service Unavailable: full");
        assert_eq!(verdict, wanted);
    }
}
