//! The binding of a blob to the message whose payload it is.
//!
//! The blob's metadata `PayloadOf` is `QUEUE[,QUEUE]/HASH`: the queues that its message may be in,
//! and the SHA-256 of the key in the message's envelope. Someone who can read the container learns
//! the hash but cannot write an envelope with it.

use smalt_sleeve::port::{Metadata, metadata_value};

use super::envelope::{Reference, sha256_hex};

/// Metadata name of the binding on a payload's blob.
pub(super) const BOUND_KEY: &str = "PayloadOf";
/// Length of a key, and of the random part of a blob's name, in hexadecimal digits (128 bits).
pub(super) const KEY_HEX_CHARS: usize = 32;

/// Whether a blob is the payload of the message that refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bond {
    Ours,
    /// Put by an earlier release: its name matches, and the hash of its content decides.
    Unbound,
    Foreign,
}

/// Returns the value of [`BOUND_KEY`].
pub(super) fn bound(queue: &str, key: &str) -> String {
    format!("{queue}/{}", sha256_hex(key.as_bytes()))
}

/// Returns the value that also allows the message in `queue`; `None` if `value` already does.
pub(super) fn bound_also(value: &str, queue: &str) -> Option<String> {
    let (queues, hash) = value.split_once('/')?;
    let known = queues.split(',').any(|known| known == queue);
    (!known).then(|| format!("{queues},{queue}/{hash}"))
}

/// Checks a blob's metadata against the reference of a message in `queue`.
pub(super) fn bond(queue: &str, reference: &Reference, metadata: &Metadata) -> Bond {
    let bound = metadata_value(metadata, BOUND_KEY);
    match (bound, &reference.key) {
        (Some(bound), Some(key)) => {
            let held = bound.split_once('/').is_some_and(|(queues, hash)| {
                queues.split(',').any(|known| known == queue) && hash == sha256_hex(key.as_bytes())
            });
            if held { Bond::Ours } else { Bond::Foreign }
        }
        (None, None) if is_of(queue, &reference.blob) => Bond::Unbound,
        _ => Bond::Foreign,
    }
}

/// Returns whether `blob` is a payload name as senders to `queue` make it.
fn is_of(queue: &str, blob: &str) -> bool {
    let random = blob
        .strip_prefix(queue)
        .and_then(|rest| rest.strip_prefix('/'));
    random.is_some_and(is_key)
}

pub(super) fn is_key(text: &str) -> bool {
    let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == KEY_HEX_CHARS && text.bytes().all(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "00112233445566778899aabbccddeeff";
    const OTHER: &str = "ffeeddccbbaa99887766554433221100";

    fn judged(queue: &str, blob: &str, key: Option<&str>, value: Option<&str>) -> Bond {
        let reference = Reference {
            container: "payloads".to_owned(),
            blob: blob.to_owned(),
            len: 1,
            sha256: String::new(),
            key: key.map(str::to_owned),
        };
        // The service returns metadata names in lower case.
        let metadata = value.map(|value| ("payloadof".to_owned(), value.to_owned()));
        bond(queue, &reference, &metadata.into_iter().collect())
    }

    #[test]
    fn a_blob_is_bound_to_queue_and_key() {
        let value = bound("orders", KEY);
        let blob = format!("orders/{OTHER}");
        for (queue, key, value, expected) in [
            ("orders", Some(KEY), Some(value.as_str()), Bond::Ours),
            ("mails", Some(KEY), Some(&value), Bond::Foreign),
            ("order", Some(KEY), Some(&value), Bond::Foreign),
            ("orders", Some(OTHER), Some(&value), Bond::Foreign),
            ("orders", None, Some(&value), Bond::Foreign),
            ("orders", Some(KEY), None, Bond::Foreign),
            ("orders", Some(KEY), Some("orders"), Bond::Foreign),
            ("orders", Some(KEY), Some("orders/"), Bond::Foreign),
            ("orders", None, None, Bond::Unbound),
            ("mails", None, None, Bond::Foreign),
        ] {
            assert_eq!(
                judged(queue, &blob, key, value),
                expected,
                "{queue} {key:?} {value:?}"
            );
        }
    }

    /// Without a binding, only names as earlier releases made them count as payloads.
    #[test]
    fn other_names_are_not_payloads() {
        for blob in [
            "victim",
            "orders/7",
            "orders/",
            "orders",
            &format!("orders/x/{KEY}"),
        ] {
            assert_eq!(judged("orders", blob, None, None), Bond::Foreign, "{blob}");
        }
        let upper = format!("orders/{}", KEY.to_uppercase());
        assert_eq!(judged("orders", &upper, None, None), Bond::Foreign);
    }

    #[test]
    fn a_requeue_adds_its_queue() {
        let value = bound("orders", KEY);
        let both = bound_also(&value, "mails").unwrap();
        for queue in ["orders", "mails"] {
            assert_eq!(judged(queue, "x", Some(KEY), Some(&both)), Bond::Ours);
            assert_eq!(bound_also(&both, queue), None);
        }
        assert_eq!(judged("other", "x", Some(KEY), Some(&both)), Bond::Foreign);
        assert_eq!(bound_also("nonsense", "mails"), None);
    }
}
