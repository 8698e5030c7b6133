//! Answers of a service in trouble.

use std::io;

use bytes::Bytes;
use http::Response;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use tokio::time::{Duration, Instant};

/// Returns the answer of a service that is busy (503, `ServerBusy`) or has failed (otherwise,
/// `InternalError`) before it executed the request.
pub(super) fn refusal(status: u16, retry_after_s: Option<u16>) -> Option<Response<Bytes>> {
    let code = match status {
        503 => "ServerBusy",
        _ => "InternalError",
    };
    let body =
        format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code></Error>");
    let answer = Response::builder()
        .status(status)
        .header("content-type", "application/xml")
        .header("x-ms-error-code", code);
    let answer = match retry_after_s {
        Some(seconds) => answer.header("retry-after", seconds.to_string()),
        None => answer,
    };
    answer.body(Bytes::from(body)).ok()
}

/// Replaces a byte of the answer's body by one that is invalid in any text; not in the XML
/// declaration, which some clients skip unread. Fails for an answer without a body, as if the
/// connection had broken.
pub(super) fn garbled(answer: Response<Bytes>, at: u16) -> io::Result<Response<Bytes>> {
    let (head, body) = answer.into_parts();
    let mut bytes = body.to_vec();
    let declared = bytes.windows(2).position(|two| two == b"?>");
    let from = declared.map_or(0, |at| at + 2);
    let at = usize::from(at).checked_rem(bytes.len() - from);
    let Some(byte) = at.and_then(|at| bytes.get_mut(from + at)) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    *byte = 0xFF;
    Ok(Response::from_parts(head, Bytes::from(bytes)))
}

/// A period in which the service is busy.
pub(super) struct Busy {
    until: Instant,
    percent: u8,
    retry_after_s: u16,
    /// Decides which requests are refused.
    dice: ChaCha8Rng,
}

impl Busy {
    /// Begins a period of `for_s` seconds.
    pub(super) fn begin(for_s: u16, percent: u8, retry_after_s: u16) -> Self {
        Busy {
            until: Instant::now() + Duration::from_secs(for_s.into()),
            percent,
            retry_after_s,
            dice: ChaCha8Rng::seed_from_u64(for_s.into()),
        }
    }

    /// Returns the answer to the next request; `None` when the service executes it.
    pub(super) fn answer(&mut self) -> Option<Response<Bytes>> {
        let is_over = Instant::now() >= self.until;
        let is_refused = !is_over && self.dice.next_u32() % 100 < u32::from(self.percent);
        refusal(503, Some(self.retry_after_s)).filter(|_| is_refused)
    }
}
