//! Bodies in a trace: as text, in Base64, or as a repeated pattern.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Minimum size of a body that is written as a repeated pattern, in bytes.
pub const GENERATED_BYTES_MIN: usize = 4_096;
/// Maximum length of a pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 256;
/// Maximum size of a generated body, in bytes: Azure's largest Put Blob, 5,000 MiB, would not fit
/// into a test's memory.
pub const GENERATED_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A body in a file; absent when it is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Body {
    /// A UTF-8 body.
    Text(String),
    /// Any other body, in Base64.
    Base64(String),
    /// A pattern, repeated and cut at `length`.
    Generated {
        /// SHA-256 of the whole body, in hex.
        sha256: String,
        /// The pattern, in Base64.
        repeat_base64: String,
        /// Length of the body, in bytes.
        length: u64,
    },
    /// A body that an imported recording lacks. A replay sends zeroes for a request, and ignores
    /// the body of an answer.
    Missing {
        /// Length according to the headers, in bytes.
        length: u64,
    },
}

/// Why a body cannot be restored from a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body or pattern is not valid Base64.
    #[error("body: {0}")]
    Base64(String),
    /// The body exceeds [`GENERATED_BYTES_MAX`], or its pattern is empty.
    #[error("body: cannot generate {length} bytes from a pattern of {pattern}")]
    Size {
        /// Length of the body, in bytes.
        length: u64,
        /// Length of the pattern, in bytes.
        pattern: usize,
    },
    /// The hash of the generated body differs from the recorded one.
    #[error("body: the hash is {made}, but {recorded} was recorded")]
    Hash {
        /// Hash of the generated body.
        made: String,
        /// Hash in the file.
        recorded: String,
    },
}

impl Body {
    /// Returns the representation of these bytes; `None` when there are none.
    pub fn of(bytes: &[u8]) -> Option<Body> {
        if bytes.is_empty() {
            return None;
        }
        if bytes.len() >= GENERATED_BYTES_MIN
            && let Some(period) = period(bytes)
        {
            return Some(Body::Generated {
                sha256: sha256_hex(bytes),
                repeat_base64: STANDARD.encode(&bytes[..period]),
                length: bytes.len() as u64,
            });
        }
        Some(match std::str::from_utf8(bytes) {
            Ok(text) => Body::Text(text.to_owned()),
            Err(_) => Body::Base64(STANDARD.encode(bytes)),
        })
    }

    /// Returns the bytes.
    ///
    /// # Errors
    /// When the file contradicts itself or the body is too large.
    pub fn bytes(&self) -> Result<Bytes, BodyError> {
        let decode = |text: &str| {
            let decoded = STANDARD.decode(text);
            decoded.map_err(|e| BodyError::Base64(e.to_string()))
        };
        let made = |pattern: &[u8], length: u64| {
            let size = usize::try_from(length).ok();
            let size = size.filter(|_| length <= GENERATED_BYTES_MAX && !pattern.is_empty());
            let size = size.ok_or(BodyError::Size {
                length,
                pattern: pattern.len(),
            })?;
            Ok(pattern
                .iter()
                .copied()
                .cycle()
                .take(size)
                .collect::<Vec<u8>>())
        };
        match self {
            Body::Missing { length } => Ok(Bytes::from(made(&[0], *length)?)),
            Body::Text(text) => Ok(Bytes::from(text.clone())),
            Body::Base64(text) => Ok(Bytes::from(decode(text)?)),
            Body::Generated {
                sha256,
                repeat_base64,
                length,
            } => {
                let made = made(&decode(repeat_base64)?, *length)?;
                let hash = sha256_hex(&made);
                if hash != *sha256 {
                    return Err(BodyError::Hash {
                        made: hash,
                        recorded: sha256.clone(),
                    });
                }
                Ok(Bytes::from(made))
            }
        }
    }
}

/// Returns the length of the shortest pattern that these bytes repeat.
fn period(bytes: &[u8]) -> Option<usize> {
    (1..=PATTERN_BYTES_MAX).find(|period| bytes[*period..] == bytes[..bytes.len() - period])
}

/// Returns the SHA-256 in hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_repetitions_are_restored() {
        let bytes: Vec<u8> = b"0123456789"
            .iter()
            .copied()
            .cycle()
            .take(100_003)
            .collect();
        let body = Body::of(&bytes).unwrap();
        assert!(
            matches!(
                &body,
                Body::Generated {
                    length: 100_003,
                    ..
                }
            ),
            "{body:?}"
        );
        assert_eq!(body.bytes().unwrap(), bytes);
    }

    #[test]
    fn inconsistent_body_is_rejected() {
        let made = |sha256: &str, repeat_base64: &str, length| Body::Generated {
            sha256: sha256.to_owned(),
            repeat_base64: repeat_base64.to_owned(),
            length,
        };
        let hash = sha256_hex(b"aaaa");
        assert_eq!(made(&hash, "YQ==", 4).bytes().unwrap(), "aaaa");
        assert!(matches!(
            made(&hash, "YQ==", 5).bytes(),
            Err(BodyError::Hash { .. })
        ));
        assert!(matches!(
            made(&hash, "", 4).bytes(),
            Err(BodyError::Size { .. })
        ));
        let large = made(&hash, "YQ==", u64::MAX).bytes();
        assert!(matches!(large, Err(BodyError::Size { .. })));
        let missing = Body::Missing { length: 3 };
        assert_eq!(missing.bytes().unwrap(), "\0\0\0");
        let endless = Body::Missing { length: u64::MAX };
        assert!(matches!(endless.bytes(), Err(BodyError::Size { .. })));
        assert!(matches!(
            Body::Base64("?".into()).bytes(),
            Err(BodyError::Base64(_))
        ));
    }
}
