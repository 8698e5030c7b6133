//! Limits of the HTTP layer. Requests beyond them get 431 or 408, or the connection is closed.

use std::time::Duration;

/// Most headers of a request. Azure allows far fewer; the SDKs send about twenty.
pub const HEADERS_MAX: usize = 256;
/// Most bytes of request line and headers together. Metadata may have 8 KiB, a SAS 2 KiB.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Time limit for receiving a request head.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for receiving the next part of a body.
pub const BODY_STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for receiving the rest of a body after its request was answered.
/// "HTTP_TIMEOUT_LIMIT_INFO structure", `DrainEntityBody`: two minutes by default.
pub const REST_TIMEOUT: Duration = Duration::from_secs(120);
/// Pause after the first failed accept; it doubles with each further failure.
pub const ACCEPT_PAUSE_FIRST: Duration = Duration::from_millis(5);
/// Longest pause between two accept calls, and so the longest that a client waits after file
/// descriptors are free again.
pub const ACCEPT_PAUSE_MAX: Duration = Duration::from_millis(500);
/// Shortest time between two log lines about failed accepts.
pub const ACCEPT_LOG_INTERVAL: Duration = Duration::from_secs(1);

/// How long a client may pause within a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Time limit for receiving a request head.
    pub head: Duration,
    /// Time limit for receiving the next part of a body.
    pub body: Duration,
    /// Time limit for the start of the next request; `None` to use the limit for the whole head.
    pub idle: Option<Duration>,
}

impl Patience {
    /// Returns the same limit for heads and bodies, in milliseconds.
    pub fn of_ms(milliseconds: u64) -> Self {
        let duration = Duration::from_millis(milliseconds);
        Patience {
            head: duration,
            body: duration,
            idle: None,
        }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            head: HEAD_TIMEOUT,
            body: BODY_STALL_TIMEOUT,
            idle: None,
        }
    }
}

/// Time limit for a TLS handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for connecting to a copy source, including name resolution and the TLS handshake.
pub const SOURCE_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a copy source's response head.
pub const SOURCE_HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for reading a whole copy source: what Azure allows for a request of a few megabytes.
/// "Setting timeouts for Blob service operations".
pub const SOURCE_TIMEOUT: Duration = Duration::from_secs(600);
