//! The retry policy, which replaces the SDK's own.
//!
//! - Five attempts, 0.8 s doubling, full jitter; `Retry-After` takes precedence
//!   ([`RetrySettings`]).
//! - Retried are responses 408, 429, 500, 502, 503 and 504, requests that never arrived, and
//!   requests that were sent but not answered.
//! - Put Message is retried only if it surely was not executed: it never arrived, or the service
//!   rejected it (503 `ServerBusy`, 429). Otherwise there could be two messages.
//! - The [`Call`] records what happened, so that the last response is interpreted correctly.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{AsyncRawResponse, Context, Request};
use smalt_protocol::Timestamp;
use tokio::time::Instant;
use tokio::time::error::Elapsed;

use super::backoff::{Dice, RetrySettings};
use super::{Repeat, call};
use crate::clock::Clock;
use crate::transport::TransportError;

tokio::task_local! {
    /// When the caller of the running call gives up.
    static DEADLINE: Instant;
}

/// Runs a call for at most `patience`. Where the service asks for a wait beyond that, the call ends
/// at once with this answer, so that its caller learns how long to wait.
///
/// # Errors
/// When the call has no result in time.
pub async fn within<T>(patience: Duration, call: impl Future<Output = T>) -> Result<T, Elapsed> {
    let call = DEADLINE.scope(Instant::now() + patience, call);
    tokio::time::timeout(patience, call).await
}

/// Returns whether the caller of the running call gives up before `wait` is over.
fn is_too_long(wait: Duration) -> bool {
    let ends = DEADLINE.try_with(|deadline| Instant::now() + wait >= *deadline);
    ends.unwrap_or(false)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// A final response, good or bad; also a failure that no retry would change.
    Answered,
    /// The service rejected the request before executing it.
    TurnedAway { retry_after: Option<Duration> },
    /// The service failed; it may have executed the request.
    Failed { retry_after: Option<Duration> },
    /// The request never reached the service.
    Unsent,
    /// The request was sent, but no complete response arrived.
    Unanswered,
}

impl Attempt {
    fn from_answer(status: u16, code: Option<&str>, retry_after: Option<Duration>) -> Self {
        match (status, code) {
            (429, _) | (503, Some("ServerBusy")) => Attempt::TurnedAway { retry_after },
            (408 | 500 | 502..=504, _) => Attempt::Failed { retry_after },
            _ => Attempt::Answered,
        }
    }

    fn from_error(error: &TransportError) -> Self {
        match error {
            TransportError::Unreachable(_) => Attempt::Unsent,
            TransportError::NoAnswer(_) => Attempt::Unanswered,
            TransportError::AnswerTooLarge(_)
            | TransportError::Malformed(_)
            | TransportError::Untrusted(_) => Attempt::Answered,
        }
    }

    /// Returns whether a retry is safe and may succeed.
    fn may_repeat(self, repeat: Repeat) -> bool {
        match self {
            Attempt::Answered => false,
            Attempt::TurnedAway { .. } | Attempt::Unsent => true,
            Attempt::Failed { .. } | Attempt::Unanswered => repeat != Repeat::Never,
        }
    }

    fn retry_after(self) -> Option<Duration> {
        match self {
            Attempt::TurnedAway { retry_after } | Attempt::Failed { retry_after } => retry_after,
            _ => None,
        }
    }
}

/// Retries a call, using tokio's clock.
pub(crate) struct RetryPolicy {
    settings: RetrySettings,
    clock: Arc<dyn Clock>,
    dice: Dice,
}

impl RetryPolicy {
    pub(crate) fn new(settings: RetrySettings, clock: Arc<dyn Clock>, seed: u64) -> Self {
        RetryPolicy {
            settings,
            clock,
            dice: Dice::new(seed),
        }
    }

    fn judge(&self, result: &PolicyResult) -> Attempt {
        match result {
            Ok(response) => self.judge_answer(response),
            // A token could not be fetched, so the request itself was never sent.
            Err(error) if matches!(error.kind(), ErrorKind::Credential) => {
                transport_error(error).map_or(Attempt::Answered, |_| Attempt::Unsent)
            }
            Err(error) => transport_error(error).map_or(Attempt::Answered, Attempt::from_error),
        }
    }

    fn judge_answer(&self, response: &AsyncRawResponse) -> Attempt {
        let status = u16::from(response.status());
        if status < 400 {
            return Attempt::Answered;
        }
        let (mut code, mut retry_after) = (None, None);
        for (name, value) in response.headers().iter() {
            match name.as_str() {
                "x-ms-error-code" => code = Some(value.as_str()),
                "retry-after" => retry_after = parse_retry_after(value.as_str(), self.clock.now()),
                _ => {}
            }
        }
        Attempt::from_answer(status, code, retry_after)
    }
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Policy for RetryPolicy {
    async fn send(
        &self,
        ctx: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let (Some(call), [first, rest @ ..]) = (call(ctx), next) else {
            return Err(crate::policy::query::incomplete());
        };
        let mut failed = 0;
        loop {
            let result = first.send(ctx, request, rest).await;
            let attempt = self.judge(&result);
            call.note(&attempt);
            failed += 1;
            if !attempt.may_repeat(call.repeat) {
                return result;
            }
            let Some(wait) = self
                .settings
                .delay(failed, attempt.retry_after(), self.dice.roll())
            else {
                return result;
            };
            if attempt.retry_after().is_some_and(is_too_long) {
                return result;
            }
            tracing::debug!(
                operation = call.operation,
                failed,
                ?attempt,
                ?wait,
                "trying again"
            );
            tokio::time::sleep(wait).await;
            request.body_mut().reset().await?;
        }
    }
}

/// Returns our transport's error inside the SDK's, at any depth.
pub(crate) fn transport_error(error: &azure_core::Error) -> Option<&TransportError> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = source {
        if let Some(found) = inner.downcast_ref() {
            return Some(found);
        }
        source = inner.source();
    }
    None
}

/// Parses `Retry-After`: seconds, or a date relative to `now`.
pub(crate) fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    match text.trim().parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Timestamp::parse_rfc1123(text.trim()).map(|until| until.since(now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_classified() {
        let none = None;
        let failed = Attempt::Failed { retry_after: none };
        let turned_away = Attempt::TurnedAway { retry_after: none };
        let table = [
            (200, None, Attempt::Answered),
            (404, Some("BlobNotFound"), Attempt::Answered),
            (412, None, Attempt::Answered),
            (408, None, failed),
            (429, None, turned_away),
            (500, Some("InternalError"), failed),
            (500, Some("OperationTimedOut"), failed),
            (501, None, Attempt::Answered),
            (502, None, failed),
            (503, Some("ServerBusy"), turned_away),
            (503, None, failed),
            (504, None, failed),
        ];
        for (status, code, expected) in table {
            assert_eq!(
                Attempt::from_answer(status, code, none),
                expected,
                "{status} {code:?}"
            );
        }
    }

    #[test]
    fn only_transient_failures_are_retried() {
        let text = String::new;
        let table = [
            (TransportError::Unreachable(text()), Attempt::Unsent),
            (TransportError::NoAnswer(text()), Attempt::Unanswered),
            (TransportError::Untrusted(text()), Attempt::Answered),
            (TransportError::Malformed(text()), Attempt::Answered),
            (TransportError::AnswerTooLarge(1), Attempt::Answered),
        ];
        for (error, expected) in table {
            assert_eq!(Attempt::from_error(&error), expected, "{error:?}");
        }
    }

    /// Put Message is never sent twice if it may have been executed.
    #[test]
    fn put_message_is_retried_only_if_never_executed() {
        let none = None;
        let table = [
            (Attempt::Answered, false, false),
            (Attempt::TurnedAway { retry_after: none }, true, true),
            (Attempt::Unsent, true, true),
            (Attempt::Failed { retry_after: none }, true, false),
            (Attempt::Unanswered, true, false),
        ];
        for (attempt, others, put) in table {
            for repeat in [
                Repeat::Read,
                Repeat::Idempotent,
                Repeat::Conditional,
                Repeat::Removal,
            ] {
                assert_eq!(attempt.may_repeat(repeat), others, "{attempt:?} {repeat:?}");
            }
            assert_eq!(attempt.may_repeat(Repeat::Never), put, "{attempt:?}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Timestamp::from_unix_s(0);
        let table = [
            ("0", Some(0)),
            (" 12 ", Some(12)),
            ("Thu, 01 Jan 1970 00:00:30 GMT", Some(30)),
            ("soon", None),
            ("-1", None),
            ("", None),
        ];
        for (text, seconds) in table {
            assert_eq!(
                parse_retry_after(text, now),
                seconds.map(Duration::from_secs),
                "{text}"
            );
        }
        let later = Timestamp::from_unix_s(60);
        let past = parse_retry_after("Thu, 01 Jan 1970 00:00:30 GMT", later);
        assert_eq!(past, Some(Duration::ZERO));
    }
}
