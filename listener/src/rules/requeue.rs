//! Decides what to put for a copy in the poison queue that is put back: which text, which queue,
//! which time to live.
//!
//! The stored text is taken out of the envelope and put unchanged; it keeps its expiry unless
//! another time to live is given. A text that is not an envelope (put bare because it was too long,
//! or by another program) is put back unchanged. The queue that an envelope names is not trusted: a
//! copy that names another queue is left alone until the operator names the target.

use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::MessageTtl;

use super::envelope::{ENVELOPE_VERSION, Envelope};

/// A message with less time to live than this would expire before or during its put.
const LIFE_MIN: Duration = Duration::from_secs(1);

/// Parses an envelope; `None` for any other text.
pub fn open(text: &str) -> Option<Envelope> {
    let envelope: Envelope = serde_json::from_str(text).ok()?;
    (envelope.v == ENVELOPE_VERSION).then_some(envelope)
}

/// The time to live of a message that is put back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Life {
    /// Until the message would have expired.
    #[default]
    Kept,
    /// A new time to live.
    Given(MessageTtl),
}

/// The operator's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish<'a> {
    /// Queue that the poison queue belongs to.
    pub queue: &'a str,
    /// Queue to put every message into, wherever it came from.
    pub to: Option<&'a str>,
    /// Time to live of the messages.
    pub life: Life,
}

/// A copy in the poison queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy<'a> {
    /// Text of the copy.
    pub text: &'a str,
    /// When the copy itself expires ([`Timestamp::MAX`] for never).
    pub expires: Timestamp,
}

/// What to do with a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Put this, then delete the copy.
    Put {
        /// Queue to put it into.
        queue: String,
        /// Text to put.
        text: String,
        /// Time to live to put it with.
        ttl: MessageTtl,
    },
    /// Leave the copy: the message expired at this time.
    Over(Timestamp),
    /// Leave the copy: it came from this other queue.
    Foreign(String),
    /// Leave the copy: this expiry cannot be parsed.
    Unreadable(String),
}

/// Decides about one copy at the service's time `now`.
pub fn plan(copy: &Copy<'_>, wish: &Wish<'_>, now: Timestamp) -> Plan {
    let envelope = open(copy.text);
    let from = envelope.as_ref().map_or(wish.queue, |e| e.queue.as_str());
    if wish.to.is_none() && !from.eq_ignore_ascii_case(wish.queue) {
        return Plan::Foreign(from.to_owned());
    }
    let ttl = match wish.life {
        Life::Given(ttl) => ttl,
        Life::Kept => {
            let expires = match envelope.as_ref().map(|e| e.expires.as_deref()) {
                None => copy.expires,
                Some(None) => Timestamp::MAX,
                Some(Some(text)) => match Timestamp::parse_iso(text) {
                    Some(expires) => expires,
                    None => return Plan::Unreadable(text.to_owned()),
                },
            };
            match left(expires, now) {
                Some(ttl) => ttl,
                None => return Plan::Over(expires),
            }
        }
    };
    Plan::Put {
        queue: wish.to.unwrap_or(wish.queue).to_owned(),
        text: envelope.map_or_else(|| copy.text.to_owned(), |e| e.body),
        ttl,
    }
}

/// Returns the remaining time to live in whole seconds; `None` if it is over.
fn left(expires: Timestamp, now: Timestamp) -> Option<MessageTtl> {
    // On the wire `never` has no fraction of a second.
    if expires.floor_s() == Timestamp::MAX.floor_s() {
        return Some(MessageTtl::Never);
    }
    let left = Duration::from_secs(expires.since(now).as_secs());
    (left >= LIFE_MIN).then_some(MessageTtl::After(left))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::envelope::{MESSAGE_MAX_BYTES, Poisoned, poison_text};
    use super::*;

    const NOW_S: u64 = 1_800_000_000;

    fn now() -> Timestamp {
        Timestamp::from_unix_s(NOW_S)
    }

    fn sealed(body: &str, queue: &str, expires: Timestamp) -> String {
        poison_text(&Poisoned {
            id: "m-1",
            queue,
            inserted: Timestamp::from_unix_s(NOW_S - 100),
            expires,
            dequeue_count: 5,
            error: "no",
            worker: "w",
            body,
        })
    }

    fn planned(text: &str, to: Option<&str>, life: Life) -> Plan {
        let copy = Copy {
            text,
            expires: Timestamp::MAX,
        };
        let wish = Wish {
            queue: "orders",
            to,
            life,
        };
        plan(&copy, &wish, now())
    }

    fn put(queue: &str, text: &str, ttl: MessageTtl) -> Plan {
        Plan::Put {
            queue: queue.to_owned(),
            text: text.to_owned(),
            ttl,
        }
    }

    #[test]
    fn the_remaining_ttl_is_kept() {
        let seconds = |s| MessageTtl::After(Duration::from_secs(s));
        let at = |s| Timestamp::from_unix_s(NOW_S + s);
        for (expires, life, ttl) in [
            (Timestamp::MAX, Life::Kept, MessageTtl::Never),
            (at(60), Life::Kept, seconds(60)),
            (at(60), Life::Given(MessageTtl::Never), MessageTtl::Never),
            (at(0), Life::Given(seconds(5)), seconds(5)),
        ] {
            let text = sealed("b", "orders", expires);
            assert_eq!(planned(&text, None, life), put("orders", "b", ttl));
        }
        let over = sealed("b", "orders", at(0));
        assert_eq!(planned(&over, None, Life::Kept), Plan::Over(at(0)));
    }

    #[test]
    fn a_text_without_envelope_is_put_back_unchanged() {
        for text in ["bare", "{}", r#"{"v":1}"#, ""] {
            let wanted = put("orders", text, MessageTtl::Never);
            assert_eq!(planned(text, None, Life::Kept), wanted);
        }
        let newer = sealed("b", "orders", Timestamp::MAX).replace("\"v\":1", "\"v\":9");
        let wanted = put("orders", &newer, MessageTtl::Never);
        assert_eq!(planned(&newer, None, Life::Kept), wanted);
    }

    /// A sender who writes an envelope cannot choose the queue that it is put into.
    #[test]
    fn an_envelope_of_another_queue_stays() {
        let text = sealed("b", "payments", Timestamp::MAX);
        let stays = Plan::Foreign("payments".to_owned());
        assert_eq!(planned(&text, None, Life::Kept), stays);
        let wanted = put("payments", "b", MessageTtl::Never);
        assert_eq!(planned(&text, Some("payments"), Life::Kept), wanted);
    }

    #[test]
    fn an_invalid_expiry_is_reported() {
        let text = sealed("b", "orders", Timestamp::from_unix_s(NOW_S + 9));
        let broken = text.replace("Z\",\"dequeue", "?\",\"dequeue");
        assert_ne!(text, broken);
        let plan = planned(&broken, None, Life::Kept);
        assert!(matches!(plan, Plan::Unreadable(_)), "{plan:?}");
    }

    proptest! {
        /// Every text that is poisoned and put back is unchanged.
        #[test]
        fn a_requeued_text_is_unchanged(
            body in "\\PC{0,200}",
            long in any::<bool>(),
            life in 1u64..1_000_000,
        ) {
            let filler = if long { MESSAGE_MAX_BYTES - 1000 } else { 0 };
            let body = format!("{body}{}", "x".repeat(filler));
            let text = sealed(&body, "orders", Timestamp::from_unix_s(NOW_S + life));
            match planned(&text, None, Life::Kept) {
                Plan::Put { text, ttl, .. } => {
                    prop_assert_eq!(text, body);
                    if !long {
                        prop_assert_eq!(ttl, MessageTtl::After(Duration::from_secs(life)));
                    }
                }
                plan => prop_assert!(false, "{:?}", plan),
            }
        }
    }

    proptest! {
        /// No text in the poison queue makes the plan fail or produces a text longer than a
        /// message.
        #[test]
        fn any_text_is_planned(
            text in "(\\{|\\}|\"v\":1,|\"queue\":\"q\",|\"expires\":|null|\"|,|\\PC){0,20}",
            to in prop::option::of("[a-z]{3,8}"),
        ) {
            if let Plan::Put { text: put, .. } = planned(&text, to.as_deref(), Life::Kept) {
                prop_assert!(put.len() <= MESSAGE_MAX_BYTES);
            }
        }
    }
}
