//! What becomes of a copy in the poison queue that shall go back: what is put, where, for how long.
//!
//! The envelope is taken off and the stored text is put as it was; its life goes on, unless another
//! is asked for. What is no envelope (put bare because it was too long, or by somebody else) goes
//! back as it is. A text is not believed about where it belongs: an envelope that names another
//! queue is left alone until the operator says where to.

use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::MessageTtl;

use super::envelope::{ENVELOPE_VERSION, Envelope};

/// A life that ends sooner than this is over: it would not outlast its put.
const LIFE_MIN: Duration = Duration::from_secs(1);

/// Opens a text of the poison queue; `None` when it is no envelope of ours.
pub fn open(text: &str) -> Option<Envelope> {
    let envelope: Envelope = serde_json::from_str(text).ok()?;
    (envelope.v == ENVELOPE_VERSION).then_some(envelope)
}

/// How long a message lives that goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Life {
    /// Until it would have expired.
    #[default]
    Kept,
    /// Anew.
    Given(MessageTtl),
}

/// What an operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish<'a> {
    /// Queue that the poison queue belongs to.
    pub queue: &'a str,
    /// Put everything here, whatever queue it came from.
    pub to: Option<&'a str>,
    /// How long the message lives in the queue.
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
        /// Text.
        text: String,
        /// Life.
        ttl: MessageTtl,
    },
    /// The message expired at this time: leave it.
    Over(Timestamp),
    /// It came from this other queue: leave it.
    Foreign(String),
    /// The time of expiry cannot be parsed: leave it.
    Unreadable(String),
}

/// Decides about one copy, at the service's time `now`.
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

/// What is left of a life, in whole seconds.
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
    fn a_life_goes_on() {
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
    fn what_is_no_envelope_goes_back_as_it_is() {
        for text in ["bare", "{}", r#"{"v":1}"#, ""] {
            let wanted = put("orders", text, MessageTtl::Never);
            assert_eq!(planned(text, None, Life::Kept), wanted);
        }
        let newer = sealed("b", "orders", Timestamp::MAX).replace("\"v\":1", "\"v\":9");
        let wanted = put("orders", &newer, MessageTtl::Never);
        assert_eq!(planned(&newer, None, Life::Kept), wanted);
    }

    /// A sender who writes an envelope must not choose the queue that it lands in.
    #[test]
    fn an_envelope_of_another_queue_stays() {
        let text = sealed("b", "payments", Timestamp::MAX);
        let stays = Plan::Foreign("payments".to_owned());
        assert_eq!(planned(&text, None, Life::Kept), stays);
        let wanted = put("payments", "b", MessageTtl::Never);
        assert_eq!(planned(&text, Some("payments"), Life::Kept), wanted);
    }

    #[test]
    fn a_time_that_cannot_be_read_is_said() {
        let text = sealed("b", "orders", Timestamp::from_unix_s(NOW_S + 9));
        let broken = text.replace("Z\",\"dequeue", "?\",\"dequeue");
        assert_ne!(text, broken);
        let plan = planned(&broken, None, Life::Kept);
        assert!(matches!(plan, Plan::Unreadable(_)), "{plan:?}");
    }

    proptest! {
        /// Poisoned and put back, every text is what it was.
        #[test]
        fn the_text_comes_back(
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
        /// Nothing that a stranger puts into the poison queue stops the one who looks through it,
        /// and nothing is put that is longer than a message.
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
