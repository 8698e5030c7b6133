//! Pure decisions about a message at its receipt and after its handler.

use std::time::Duration;

use smalt_protocol::Timestamp;

use crate::handler::Verdict;

/// The alarm is raised in the last tenth of a message's time to live (LL2).
const ALARM_SHARE: u32 = 10;

/// What to do with a message that was just received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// Delete it: it was finished before, and only the delete is missing.
    DeleteOnly,
    /// Move it to the poison queue without running the handler: it was received too often (LS5).
    TooManyAttempts,
    /// Move it to the poison queue unchanged: its text does not have the queue's encoding.
    Undecodable,
    /// Run the handler.
    Run,
}

/// Decides at receipt. The memory of finished messages is checked first, so that a handled message
/// is not poisoned because its delete failed too often.
pub fn at_receipt(
    finished_before: bool,
    dequeue_count: u32,
    max_dequeue: u32,
    decodable: bool,
) -> Receipt {
    if finished_before {
        Receipt::DeleteOnly
    } else if dequeue_count > max_dequeue {
        Receipt::TooManyAttempts
    } else if !decodable {
        Receipt::Undecodable
    } else {
        Receipt::Run
    }
}

/// What to do after a verdict while the lock is still held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Delete the message.
    Delete,
    /// Hide the message and try again, after the requested delay or the curve's, with the reason.
    Retry(Option<Duration>, String),
    /// Move the message to the poison queue, with the reason.
    Poison(String),
    /// Give the message back, with the reason: the handler cannot run, which is not the message's
    /// fault.
    Release(String),
}

/// Decides after a run. A failed last attempt goes to the poison queue at once, rather than at the
/// next receipt.
pub fn after_run(verdict: Verdict, dequeue_count: u32, max_dequeue: u32) -> Settlement {
    match verdict {
        Verdict::Ok => Settlement::Delete,
        Verdict::Reject { reason } => Settlement::Poison(reason),
        // Also after the last attempt, because the handler never ran.
        Verdict::Unable { reason } => Settlement::Release(reason),
        Verdict::Retry { reason, .. } if dequeue_count >= max_dequeue => Settlement::Poison(reason),
        Verdict::Retry { after, reason } => Settlement::Retry(after, reason),
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

    #[test]
    fn receipt_table() {
        use Receipt::*;
        let table = [
            (false, 1, true, Run),
            (false, 5, true, Run),
            (false, 6, true, TooManyAttempts),
            (false, 1, false, Undecodable),
            (false, 6, false, TooManyAttempts),
            (true, 1, true, DeleteOnly),
            (true, 99, true, DeleteOnly),
            (true, 1, false, DeleteOnly),
        ];
        for (done, count, decodable, wanted) in table {
            assert_eq!(
                at_receipt(done, count, 5, decodable),
                wanted,
                "{done} {count}"
            );
        }
    }

    #[test]
    fn settlement_table() {
        let retry = || Verdict::Retry {
            after: None,
            reason: "busy".into(),
        };
        assert_eq!(after_run(Verdict::Ok, 9, 5), Settlement::Delete);
        assert_eq!(
            after_run(retry(), 4, 5),
            Settlement::Retry(None, "busy".into())
        );
        assert_eq!(after_run(retry(), 5, 5), Settlement::Poison("busy".into()));
        let reject = Verdict::Reject {
            reason: "bad".into(),
        };
        assert_eq!(after_run(reject, 1, 5), Settlement::Poison("bad".into()));
        let gone = Settlement::Release("gone".into());
        assert_eq!(after_run(Verdict::unable("gone"), 1, 5), gone);
        assert_eq!(after_run(Verdict::unable("gone"), 5, 5), gone);
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
