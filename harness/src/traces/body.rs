//! Bodies in a trace: as text, in Base64, or as what makes them again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Bodies of this size and more are written as a repeated pattern where they are one.
pub const GENERATED_BYTES_MIN: usize = 4_096;
/// The longest pattern that is looked for.
pub const PATTERN_BYTES_MAX: usize = 256;
/// The largest body that a file may ask to be made: Azure's largest Put Blob, 5,000 MiB, would
/// not fit into a test's memory.
pub const GENERATED_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A body as it stands in a file; absent when there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Body {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Base64(String),
    /// A pattern, repeated and cut at `length`.
    Generated {
        /// Hex, of the whole body.
        sha256: String,
        /// The pattern in Base64.
        repeat_base64: String,
        /// In bytes.
        length: u64,
    },
    /// What an imported recording lost. A request is replayed with zeroes in its place, an answer
    /// without a look at its body.
    Missing {
        /// In bytes, as the headers say.
        length: u64,
    },
}

/// Why a body cannot be made from what the file says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Not Base64.
    #[error("body: {0}")]
    Base64(String),
    /// Larger than [`GENERATED_BYTES_MAX`], or of no pattern.
    #[error("body: {length} bytes of a pattern of {pattern} cannot be made")]
    Size {
        /// Asked for.
        length: u64,
        /// Bytes in the pattern.
        pattern: usize,
    },
    /// What was made is not what was recorded.
    #[error("body: made {made} where {recorded} was recorded")]
    Hash {
        /// Of what was made.
        made: String,
        /// Of what the file says.
        recorded: String,
    },
}

impl Body {
    /// How these bytes are written; `None` when there are none.
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

    /// The bytes.
    ///
    /// # Errors
    /// When the file contradicts itself or asks for too much.
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

/// The length of the shortest pattern that these bytes repeat.
fn period(bytes: &[u8]) -> Option<usize> {
    (1..=PATTERN_BYTES_MAX).find(|period| bytes[*period..] == bytes[..bytes.len() - period])
}

/// SHA-256 in hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_repetitions_are_made_again() {
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
    fn what_contradicts_itself_is_refused() {
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
