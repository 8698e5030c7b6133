//! The decision about a message: what to do with it at its receipt, and after its run.

use std::time::Duration;

use smalt_protocol::Timestamp;

use crate::handler::Verdict;
use crate::report::Outcome;

/// The alarm is raised in the last tenth of a message's time to live (LL2).
const ALARM_SHARE: u32 = 10;

/// What is known about a message at its receipt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Whether this process finished the message before, so that only its delete is missing.
    pub finished_before: bool,
    /// Whether the listener is stopping.
    pub is_stopping: bool,
    /// How often the message was received, including this time.
    pub dequeue_count: u32,
    /// Number of allowed attempts.
    pub max_dequeue: u32,
    /// Why no handler can read the message; `None` if one can.
    pub unreadable: Option<String>,
}

/// How far the handler came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ran {
    /// It has not been asked to start.
    #[default]
    NotYet,
    /// It could not start with enough of the lock left, for this reason.
    TooLate(String),
    /// It ended, or was timed out, while the lock was held.
    Ended(Verdict),
    /// Its lock was lost, for this reason, and it was cancelled.
    LostLock(String),
    /// The grace time of a stop ended, and it was cancelled.
    Interrupted,
}

/// What to do with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Run the handler, and decide again.
    Run,
    /// Delete the handled message.
    Delete,
    /// Delete the message, which was finished before.
    DeleteAgain,
    /// Hide the message and try again, after the requested delay or the curve's, with the reason.
    Retry(Option<Duration>, String),
    /// Move the message to the poison queue, with the reason.
    Poison(String),
    /// Give the message back, with the reason.
    Release(String),
    /// Give the message back, because the handler cannot run, which is not the message's fault.
    Unable(String),
    /// Make no request: the lock is lost, or its end returns the message.
    Leave(Outcome, String),
}

/// Decides about a message that was received and whose handler came this far.
pub fn decide(message: &Received, ran: Ran) -> Step {
    match ran {
        Ran::NotYet => at_receipt(message),
        Ran::TooLate(reason) => Step::Leave(Outcome::NotStarted, reason),
        Ran::Ended(verdict) => after_run(message, verdict),
        Ran::LostLock(reason) => Step::Leave(Outcome::LostLock, reason),
        Ran::Interrupted => Step::Release("grace time over".to_owned()),
    }
}

/// The memory of finished messages is checked first, so that a handled message is not poisoned
/// because its delete failed too often.
fn at_receipt(message: &Received) -> Step {
    let (dequeue_count, max_dequeue) = (message.dequeue_count, message.max_dequeue);
    if message.finished_before {
        Step::DeleteAgain
    } else if message.is_stopping {
        Step::Release("stopping".to_owned())
    } else if dequeue_count > max_dequeue {
        Step::Poison(format!(
            "received {dequeue_count} times; {max_dequeue} attempts are allowed"
        ))
    } else if let Some(why) = &message.unreadable {
        Step::Poison(why.clone())
    } else {
        Step::Run
    }
}

/// A failed last attempt goes to the poison queue at once, rather than at the next receipt.
fn after_run(message: &Received, verdict: Verdict) -> Step {
    let (dequeue_count, max_dequeue) = (message.dequeue_count, message.max_dequeue);
    match verdict {
        Verdict::Ok => Step::Delete,
        Verdict::Reject { reason } => Step::Poison(reason),
        // Also after the last attempt, because the handler never ran.
        Verdict::Unable { reason } => Step::Unable(reason),
        Verdict::Retry { reason, .. } if dequeue_count >= max_dequeue => Step::Poison(reason),
        Verdict::Retry { after, reason } => Step::Retry(after, reason),
    }
}

/// Returns the time from which an unhandled message is about to expire: a tenth of its time to live
/// is left then (LL2). `None` for a message that never expires.
pub fn alarm_from(inserted: Timestamp, expires: Timestamp) -> Option<Timestamp> {
    if expires == Timestamp::MAX {
        return None;
    }
    let tenth = expires.since(inserted) / ALARM_SHARE;
    Some(expires.minus(tenth))
}

/// Returns whether a message that cannot be received before `next_attempt` is about to expire.
pub fn expiry_alarm(inserted: Timestamp, expires: Timestamp, next_attempt: Timestamp) -> bool {
    alarm_from(inserted, expires).is_some_and(|from| next_attempt >= from)
}

/// Returns the number of messages to request: the free slots, within 1 to 32.
pub fn batch_size(free_slots: u32) -> u32 {
    free_slots.clamp(1, BATCH_MAX)
}

/// Largest number of messages of one Get Messages.
pub const BATCH_MAX: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn received(dequeue_count: u32) -> Received {
        Received {
            dequeue_count,
            max_dequeue: 5,
            ..Received::default()
        }
    }

    #[test]
    fn receipt_table() {
        let poison = |reason: &str| Step::Poison(reason.to_owned());
        let too_often = |count| poison(&format!("received {count} times; 5 attempts are allowed"));
        let release = || Step::Release("stopping".to_owned());
        let table = [
            // finished before, stopping, dequeue count, readable
            (false, false, 1, true, Step::Run),
            (false, false, 5, true, Step::Run),
            (false, false, 6, true, too_often(6)),
            (false, false, 1, false, poison("not Base64")),
            (false, false, 6, false, too_often(6)),
            (false, true, 1, true, release()),
            (false, true, 6, false, release()),
            (true, false, 1, true, Step::DeleteAgain),
            (true, false, 99, true, Step::DeleteAgain),
            (true, true, 1, false, Step::DeleteAgain),
        ];
        for (finished_before, is_stopping, count, readable, wanted) in table {
            let message = Received {
                finished_before,
                is_stopping,
                unreadable: (!readable).then(|| "not Base64".to_owned()),
                ..received(count)
            };
            assert_eq!(decide(&message, Ran::NotYet), wanted, "{message:?}");
        }
    }

    #[test]
    fn run_table() {
        let text = |text: &str| text.to_owned();
        let ended = Ran::Ended;
        for (count, ran, wanted) in [
            (9, ended(Verdict::Ok), Step::Delete),
            (
                4,
                ended(Verdict::retry("busy")),
                Step::Retry(None, text("busy")),
            ),
            (5, ended(Verdict::retry("busy")), Step::Poison(text("busy"))),
            (1, ended(Verdict::reject("bad")), Step::Poison(text("bad"))),
            (
                1,
                ended(Verdict::unable("gone")),
                Step::Unable(text("gone")),
            ),
            (
                5,
                ended(Verdict::unable("gone")),
                Step::Unable(text("gone")),
            ),
            (
                1,
                Ran::TooLate(text("late")),
                Step::Leave(Outcome::NotStarted, text("late")),
            ),
            (
                5,
                Ran::LostLock(text("404")),
                Step::Leave(Outcome::LostLock, text("404")),
            ),
            (1, Ran::Interrupted, Step::Release(text("grace time over"))),
        ] {
            assert_eq!(
                decide(&received(count), ran.clone()),
                wanted,
                "{count} {ran:?}"
            );
        }
    }

    #[test]
    fn the_last_tenth_raises_the_alarm() {
        let t = Timestamp::from_unix_s;
        let (inserted, expires) = (t(1000), t(2000));
        assert!(!expiry_alarm(inserted, expires, t(1899)));
        assert!(expiry_alarm(inserted, expires, t(1900)));
        assert!(expiry_alarm(inserted, expires, t(5000)));
        assert_eq!(alarm_from(inserted, expires), Some(t(1900)));
        // A message that never expires raises no alarm.
        assert_eq!(alarm_from(inserted, Timestamp::MAX), None);
        assert!(!expiry_alarm(inserted, Timestamp::MAX, Timestamp::MAX));
    }

    #[test]
    fn batches_are_what_the_service_takes() {
        assert_eq!(
            [0, 1, 31, 32, 33, u32::MAX].map(batch_size),
            [1, 1, 31, 32, 32, 32]
        );
    }
}
