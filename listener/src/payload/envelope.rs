//! The envelope of a claim check: the body of a message whose payload is in a blob.
//!
//! `{"v":1,"enc":"zstd|gzip|none","ref":{"c":container,"b":blob,"len":bytes,"sha256":hex,
//! "key":hex}}`: `len` and `sha256` are those of the payload before compression, `key` binds the
//! blob; envelopes of earlier releases have no key. Only queues that are configured for it read
//! envelopes; there, a body counts as one if it is a JSON object with `v`, `enc` and a `ref` that
//! is an object. Everything else is a plain message, including messages put before the queue was
//! configured. An application's own body that looks like an envelope is sent as a payload, so that
//! it is never mistaken for one.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use smalt_protocol::names;

use super::Compression;
use super::binding;

/// Version that this release writes and reads.
pub const CLAIM_VERSION: u32 = 1;
/// Length of a SHA-256 in hexadecimal digits.
const SHA256_HEX_CHARS: usize = 64;

/// The envelope of a payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Version, [`CLAIM_VERSION`].
    pub v: u32,
    /// Compression of the blob.
    pub enc: Compression,
    /// Location and properties of the payload.
    #[serde(rename = "ref")]
    pub reference: Reference,
}

/// Location and properties of a payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Container of the blob.
    #[serde(rename = "c")]
    pub container: String,
    /// Name of the blob.
    #[serde(rename = "b")]
    pub blob: String,
    /// Length of the payload in bytes, uncompressed.
    pub len: u64,
    /// SHA-256 of the payload, uncompressed: 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Key that binds the blob to this message: 32 lower-case hexadecimal digits; `None` in
    /// envelopes of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The result of reading a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Not an envelope: the body itself.
    Plain,
    /// A valid envelope.
    Claim(Claim),
    /// An envelope that must not be followed, with the reason.
    Refused(String),
}

/// Bounds that a reference must respect.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<'a> {
    /// The only container that payloads are read from.
    pub container: &'a str,
    /// Longest payload in bytes, uncompressed.
    pub payload_bytes_max: u64,
}

/// Reads a message body of a queue that is configured for payloads.
pub fn read(body: &[u8], bounds: &Bounds<'_>) -> Reading {
    if !looks_like_claim(body) {
        return Reading::Plain;
    }
    let claim: Claim = match serde_json::from_slice(body) {
        Ok(claim) => claim,
        Err(error) => return Reading::Refused(format!("invalid payload envelope: {error}")),
    };
    match refusal(&claim, bounds) {
        Some(why) => Reading::Refused(why),
        None => Reading::Claim(claim),
    }
}

/// Returns whether a body would be read as an envelope; such a body is never sent plain.
pub fn looks_like_claim(body: &[u8]) -> bool {
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        return false;
    }
    // Checks the names only; [`read`] checks the contents of a reference.
    let Ok(object) = serde_json::from_slice::<serde_json::Map<_, _>>(body) else {
        return false;
    };
    let reference = object.get("ref");
    object.contains_key("v")
        && object.contains_key("enc")
        && reference.is_some_and(serde_json::Value::is_object)
}

fn refusal(claim: &Claim, bounds: &Bounds<'_>) -> Option<String> {
    let Reference {
        container,
        blob,
        len,
        sha256,
        key,
    } = &claim.reference;
    let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if claim.v != CLAIM_VERSION {
        return Some(format!("envelope version {}, expected 1", claim.v));
    }
    if container != bounds.container {
        // The container's name is not shown: it is untrusted input.
        return Some("the payload is in another container than the configured one".to_owned());
    }
    // URLs normalise the names `.` and `..`, so no such blob can be requested.
    let named = names::validate_blob_name(blob).is_ok() && !matches!(blob.as_str(), "." | "..");
    if !named {
        return Some("the payload's name is not a valid blob name".to_owned());
    }
    if sha256.len() != SHA256_HEX_CHARS || !sha256.bytes().all(hex) {
        return Some("the payload's hash is not a SHA-256".to_owned());
    }
    if key.as_deref().is_some_and(|key| !binding::is_key(key)) {
        return Some("the payload's key is not 32 hexadecimal digits".to_owned());
    }
    let most = bounds.payload_bytes_max;
    (*len > most).then(|| format!("the payload has {len} bytes; {most} are allowed"))
}

impl Claim {
    /// Creates the envelope of a payload in `blob`.
    pub fn of(payload: &[u8], enc: Compression, container: &str, blob: &str) -> Self {
        Claim {
            v: CLAIM_VERSION,
            enc,
            reference: Reference {
                container: container.to_owned(),
                blob: blob.to_owned(),
                len: payload.len() as u64,
                sha256: sha256_hex(payload),
                key: None,
            },
        }
    }

    /// Adds the key that binds the blob.
    #[must_use]
    pub fn bound_by(mut self, key: &str) -> Self {
        self.reference.key = Some(key.to_owned());
        self
    }

    /// Returns the JSON text to put into the queue.
    pub fn text(&self) -> String {
        // Serialising a struct of strings and numbers cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Returns the SHA-256 in lower-case hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: Bounds<'_> = Bounds {
        container: "payloads",
        payload_bytes_max: 1000,
    };
    /// SHA-256 of the empty string (FIPS 180-4).
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn text(v: u32, enc: &str, c: &str, b: &str, len: u64, sha256: &str) -> String {
        let at = format!(r#""c":"{c}","b":"{b}","len":{len},"sha256":"{sha256}""#);
        format!(r#"{{"v":{v},"enc":"{enc}","ref":{{{at}}}}}"#)
    }

    #[test]
    fn the_envelope_has_the_stated_form() {
        let claim = Claim::of(b"", Compression::Zstd, "payloads", "orders/1");
        assert_eq!(
            claim.text(),
            text(1, "zstd", "payloads", "orders/1", 0, EMPTY)
        );
        assert_eq!(
            read(claim.text().as_bytes(), &BOUNDS),
            Reading::Claim(claim)
        );
    }

    #[test]
    fn plain_bodies_stay_plain() {
        for body in [
            "",
            "hello",
            "{",
            "[]",
            "null",
            "{}",
            r#"{"v":1}"#,
            r#"{"v":1,"enc":"zstd"}"#,
            r#"{"v":1,"enc":"zstd","ref":"order 7"}"#,
            r#"{"enc":"zstd","ref":{}}"#,
            r#"{"v":1,"id":"m","queue":"orders","body":"x"}"#,
        ] {
            assert_eq!(read(body.as_bytes(), &BOUNDS), Reading::Plain, "{body}");
        }
        assert_eq!(read(b"\xff\xfe{\"v\"", &BOUNDS), Reading::Plain);
    }

    /// LS6: only references into the configured container are accepted.
    #[test]
    fn ls6_bad_envelopes_are_refused() {
        let long = "x".repeat(1025);
        let upper = EMPTY.to_uppercase();
        let table = [
            text(2, "zstd", "payloads", "b", 0, EMPTY),
            text(0, "zstd", "payloads", "b", 0, EMPTY),
            text(1, "brotli", "payloads", "b", 0, EMPTY),
            text(1, "zstd", "secrets", "b", 0, EMPTY),
            text(1, "zstd", "payloads2", "b", 0, EMPTY),
            text(1, "zstd", "Payloads", "b", 0, EMPTY),
            text(1, "zstd", "payloads/../secrets", "b", 0, EMPTY),
            text(1, "zstd", "", "b", 0, EMPTY),
            text(1, "zstd", "payloads", "", 0, EMPTY),
            text(1, "zstd", "payloads", &long, 0, EMPTY),
            text(1, "zstd", "payloads", ".", 0, EMPTY),
            text(1, "zstd", "payloads", "..", 0, EMPTY),
            text(1, "zstd", "payloads", "a\\nb", 0, EMPTY),
            text(1, "zstd", "payloads", "b", 1001, EMPTY),
            text(1, "zstd", "payloads", "b", 0, &EMPTY[1..]),
            text(1, "zstd", "payloads", "b", 0, &upper),
            r#"{"v":1,"enc":"zstd","ref":{}}"#.to_owned(),
            r#"{"v":"1","enc":7,"ref":{"c":"payloads"}}"#.to_owned(),
            text(1, "zstd", "payloads", "b", 0, EMPTY).replace("\"v\"", "\"w\":2,\"v\""),
            text(1, "zstd", "payloads", "b", 0, EMPTY).replace(":0,", ":-1,"),
            text(1, "zstd", "payloads", "b", 0, EMPTY).replace("\"}}", "\",\"key\":\"\"}}"),
            text(1, "zstd", "payloads", "b", 0, EMPTY).replace("\"}}", "\",\"key\":\"XY\"}}"),
        ];
        for body in table {
            let read = read(body.as_bytes(), &BOUNDS);
            assert!(matches!(read, Reading::Refused(_)), "{body}: {read:?}");
        }
        // Within a longer name `..` is not normalised.
        let inside = text(1, "zstd", "payloads", "a/../b", 0, EMPTY);
        assert!(matches!(
            read(inside.as_bytes(), &BOUNDS),
            Reading::Claim(_)
        ));
        let largest = text(1, "none", "payloads", "b", 1000, EMPTY);
        assert!(matches!(
            read(largest.as_bytes(), &BOUNDS),
            Reading::Claim(_)
        ));
    }

    proptest! {
        /// Random bytes never panic, and are plain.
        #[test]
        fn garbage_is_plain(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(read(&body, &BOUNDS), Reading::Plain);
        }

        /// A truncated or changed envelope never leads out of the container or beyond the length
        /// bound.
        #[test]
        fn ls6_a_damaged_envelope_stays_inside(
            at in 0usize..200, byte in any::<u8>(), cut in 0usize..200,
        ) {
            let mut body = text(1, "gzip", "payloads", "orders/1", 9, EMPTY).into_bytes();
            let (at, cut) = (at % body.len(), cut % body.len());
            body[at] = byte;
            body.truncate(body.len() - cut / 20);
            if let Reading::Claim(claim) = read(&body, &BOUNDS) {
                prop_assert_eq!(claim.reference.container, "payloads");
                prop_assert!(claim.reference.len <= 1000);
            }
        }

        /// A written envelope is read back unchanged.
        #[test]
        fn round_trip(
            payload in proptest::collection::vec(any::<u8>(), 0..1000),
            blob in "[^\\p{C}.]\\PC{0,49}",
        ) {
            let claim = Claim::of(&payload, Compression::None, "payloads", &blob)
                .bound_by(&"0123456789abcdef".repeat(2));
            prop_assert!(looks_like_claim(claim.text().as_bytes()));
            prop_assert_eq!(read(claim.text().as_bytes(), &BOUNDS), Reading::Claim(claim));
        }
    }
}
