//! The text of a message in the poison queue: one JSON object around the stored message.
//!
//! `{"v":1,"id","queue","inserted","expires","dequeue_count","error","trace","body"}`: `body` is
//! the stored text unchanged, so that putting it back restores the message byte for byte, and `id`
//! is the source message's, which identifies copies that were put twice. Times are RFC 3339;
//! `expires` is null for a message that never expires. JSON escapes control characters, so an
//! envelope is always legal XML text; the two non-characters that XML forbids cannot be in a stored
//! text and are replaced in the error.

use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;

/// Largest text of a message (Put Message: 64 KiB encoded).
pub const MESSAGE_MAX_BYTES: usize = 64 * 1024;
/// Length of the longest error text that is kept.
pub const ERROR_MAX_CHARS: usize = 1024;
/// Version of the envelope.
pub const ENVELOPE_VERSION: u32 = 1;

/// The envelope of a poisoned message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Version, [`ENVELOPE_VERSION`].
    pub v: u32,
    /// Id of the source message.
    pub id: String,
    /// Queue that the message came from.
    pub queue: String,
    /// When the message was first put, RFC 3339.
    pub inserted: String,
    /// When the message would have expired, RFC 3339; `None` for never.
    pub expires: Option<String>,
    /// How often the message was received.
    pub dequeue_count: u32,
    /// Why the message was poisoned.
    pub error: String,
    /// Worker that poisoned the message and the attempt's number, as in the log.
    pub trace: String,
    /// The stored text of the message.
    pub body: String,
}

/// The facts from which an envelope is made.
#[derive(Clone, Copy, Debug)]
pub struct Poisoned<'a> {
    /// Id of the source message.
    pub id: &'a str,
    /// Queue that the message came from.
    pub queue: &'a str,
    /// When the message was first put.
    pub inserted: Timestamp,
    /// When the message would have expired.
    pub expires: Timestamp,
    /// How often the message was received.
    pub dequeue_count: u32,
    /// Why the message is poisoned.
    pub error: &'a str,
    /// Name of the worker.
    pub worker: &'a str,
    /// The stored text of the message.
    pub body: &'a str,
}

/// Returns the text to put: the envelope, with a shortened error if space is short, or the stored
/// text alone if even that does not fit. The facts may be lost, but never the content.
pub fn poison_text(p: &Poisoned<'_>) -> String {
    for error_chars in [ERROR_MAX_CHARS, 64, 0] {
        let text = seal(p, error_chars);
        if text.len() <= MESSAGE_MAX_BYTES {
            return text;
        }
    }
    p.body.to_owned()
}

/// Returns the worker and attempt as used in log and envelope.
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
    // Serialising a struct of strings and numbers cannot fail; the fallback is the stored text.
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

    /// "Put Message": a message has at most 64 KiB.
    #[test]
    fn a_full_size_body_is_put_without_envelope() {
        let body = "x".repeat(65_536);
        assert_eq!(poison_text(&facts(&body, "e")), body);
        let nearly = "x".repeat(65_536 - 400);
        let text = poison_text(&facts(&nearly, &"long error ".repeat(200)));
        assert!(text.len() <= 65_536 && text.starts_with('{'));
    }

    proptest! {
        /// The body survives unchanged; the text fits and is legal in XML.
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
