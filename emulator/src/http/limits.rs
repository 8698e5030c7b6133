//! Bounds of the HTTP layer. Beyond them the answer is 431 or 408, or the connection is closed.

use std::time::Duration;

/// Headers of a request. Azure allows far fewer; the SDKs send about twenty.
pub const HEADERS_MAX: usize = 256;
/// Bytes of request line and headers together. Metadata alone may have 8 KiB, a SAS 2 KiB.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Time in which a head must arrive.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time in which the next part of a body must arrive.
pub const BODY_STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Time in which the rest of a body must arrive whose request is answered already.
/// "HTTP_TIMEOUT_LIMIT_INFO structure", `DrainEntityBody`: two minutes when nobody says.
pub const REST_TIMEOUT: Duration = Duration::from_secs(120);
/// Pause after the first connection that could not be accepted; it doubles with each further one.
pub const ACCEPT_PAUSE_FIRST: Duration = Duration::from_millis(5);
/// Longest pause between two tries to accept a connection: what a client waits for at most when
/// descriptors are free again.
pub const ACCEPT_PAUSE_MAX: Duration = Duration::from_millis(500);
/// Least time between two lines of the log about connections that could not be accepted.
pub const ACCEPT_LOG_INTERVAL: Duration = Duration::from_secs(1);

/// How long a client may keep silent within a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Time in which a head must arrive.
    pub head: Duration,
    /// Time in which the next part of a body must arrive.
    pub body: Duration,
    /// Time in which the next request must begin; without it, as for the whole head.
    pub idle: Option<Duration>,
}

impl Patience {
    /// The same for heads and bodies, in milliseconds.
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

/// Time in which a TLS handshake must end.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which a copy source must be connected to, its name resolved and TLS agreed on.
pub const SOURCE_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which a copy source must begin to answer.
pub const SOURCE_HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time in which a copy source must be read whole: what Azure allows a request of few megabytes.
/// "Setting timeouts for Blob service operations".
pub const SOURCE_TIMEOUT: Duration = Duration::from_secs(600);
