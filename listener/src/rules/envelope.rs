//! What lies in the poison queue: one JSON object around the message as it was stored.
//!
//! `{"v":1,"id","queue","inserted","expires","dequeue_count","error","trace","body"}`: `body` is
//! the stored text unchanged, so that putting it back restores the message byte for byte, and `id`
//! is the source message's, by which a copy put twice is told apart. Times are RFC 3339; `expires`
//! is null for a message that never did. JSON escapes control characters, so an envelope is always
//! legal XML text; the two non-characters that XML forbids cannot be in a stored text and are
//! replaced in the error.

use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;

/// Largest text of a message (Put Message: 64 KiB encoded).
pub const MESSAGE_MAX_BYTES: usize = 64 * 1024;
/// Longest error text that is kept.
pub const ERROR_MAX_CHARS: usize = 1024;
/// Version of the envelope.
pub const ENVELOPE_VERSION: u32 = 1;

/// The envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// [`ENVELOPE_VERSION`].
    pub v: u32,
    /// Id of the source message.
    pub id: String,
    /// Queue that it came from.
    pub queue: String,
    /// When it was first put, RFC 3339.
    pub inserted: String,
    /// When it would have expired, RFC 3339; `None` for never.
    pub expires: Option<String>,
    /// How often it was taken.
    pub dequeue_count: u32,
    /// Why it is here.
    pub error: String,
    /// Worker that put it here, and its attempt: where to look in the log.
    pub trace: String,
    /// The stored text.
    pub body: String,
}

/// The facts that an envelope is made of.
#[derive(Clone, Copy, Debug)]
pub struct Poisoned<'a> {
    /// Id of the source message.
    pub id: &'a str,
    /// Queue that it came from.
    pub queue: &'a str,
    /// When it was first put.
    pub inserted: Timestamp,
    /// When it would have expired.
    pub expires: Timestamp,
    /// How often it was taken.
    pub dequeue_count: u32,
    /// Why.
    pub error: &'a str,
    /// Worker.
    pub worker: &'a str,
    /// The stored text.
    pub body: &'a str,
}

/// The text to put: the envelope, with a shorter error when space is short, or, when even that does
/// not fit, the stored text alone. Facts may be lost that way, content never is.
pub fn poison_text(p: &Poisoned<'_>) -> String {
    for error_chars in [ERROR_MAX_CHARS, 64, 0] {
        let text = seal(p, error_chars);
        if text.len() <= MESSAGE_MAX_BYTES {
            return text;
        }
    }
    p.body.to_owned()
}

/// Which attempt of whom it was: in the log as in the envelope.
pub fn trace(worker: &str, dequeue_count: u32) -> String {
    format!("{worker}/{dequeue_count}")
}

fn seal(p: &Poisoned<'_>, error_chars: usize) -> String {
    let error: String = p.error.chars().take(error_chars).map(xml_safe).collect();
    let envelope = Envelope {
        v: ENVELOPE_VERSION,
        id: p.id.to_owned(),
        queue: p.queue.to_owned(),
        inserted: p.inserted.iso_s(),
        expires: (p.expires != Timestamp::MAX).then(|| p.expires.iso_s()),
        dequeue_count: p.dequeue_count,
        error,
        trace: trace(p.worker, p.dequeue_count),
        body: p.body.to_owned(),
    };
    // A struct of strings and numbers always serialises; the stored text is the fallback all the
    // same.
    serde_json::to_string(&envelope).unwrap_or_else(|_| p.body.to_owned())
}

fn xml_safe(c: char) -> char {
    match c {
        '\u{fffe}' | '\u{ffff}' | '\u{7f}'..='\u{9f}' => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn facts<'a>(body: &'a str, error: &'a str) -> Poisoned<'a> {
        Poisoned {
            id: "m-1",
            queue: "orders",
            inserted: Timestamp::from_unix_s(1_500_000_000),
            expires: Timestamp::MAX,
            dequeue_count: 5,
            error,
            worker: "w1",
            body,
        }
    }

    #[test]
    fn the_envelope_says_where_it_came_from() {
        let text = poison_text(&facts("hello", "exit status 65"));
        let wanted = [
            r#"{"v":1,"id":"m-1","queue":"orders","inserted":"2017-07-14T02:40:00Z","#,
            r#""expires":null,"dequeue_count":5,"error":"exit status 65","trace":"w1/5","#,
            r#""body":"hello"}"#,
        ];
        assert_eq!(text, wanted.concat());
    }

    /// "Put Message": a message has 64 KiB at most.
    #[test]
    fn a_full_size_body_goes_bare_rather_than_not_at_all() {
        let body = "x".repeat(65_536);
        assert_eq!(poison_text(&facts(&body, "e")), body);
        let nearly = "x".repeat(65_536 - 400);
        let text = poison_text(&facts(&nearly, &"long error ".repeat(200)));
        assert!(text.len() <= 65_536 && text.starts_with('{'));
    }

    proptest! {
        /// The body comes out as it went in, the text fits and is legal in XML.
        #[test]
        fn the_body_survives(body in "\\PC{0,200}[\\x00-\\x1f]{0,5}", error in "\\PC{0,2000}") {
            let text = poison_text(&facts(&body, &error));
            prop_assert!(text.len() <= MESSAGE_MAX_BYTES);
            prop_assert!(text.chars().all(|c| c >= ' '));
            let back: Envelope = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(back.body, body);
        }
    }
}
