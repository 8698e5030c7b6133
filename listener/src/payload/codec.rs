//! Compression of payloads, bounded in both directions.
//!
//! A payload's length is known before it is unpacked, and unpacking stops one byte beyond it, so
//! that a decompression bomb is refused whatever its blob claims.

use std::io::{self, Read, Write};

use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use super::envelope::sha256_hex;

/// Compression level of zstd, its own default.
const ZSTD_LEVEL: i32 = 3;
/// Largest window that a zstd frame may ask for, as a power of two: 16 MiB. Level 3 uses 2 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 24;

/// Compression of payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Zstandard (RFC 8878).
    #[default]
    Zstd,
    /// Gzip (RFC 1952).
    Gzip,
    /// No compression.
    None,
}

/// Why a blob is not the payload that its envelope names.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// The blob cannot be unpacked.
    #[error("the payload cannot be unpacked: {0}")]
    Unreadable(#[from] io::Error),
    /// The payload has another length.
    #[error("the payload is not the {expected} bytes long that its message states")]
    Length {
        /// Length that the message states, in bytes.
        expected: u64,
    },
    /// The payload has another SHA-256.
    #[error("the payload has another SHA-256 than its message states")]
    Hash,
}

/// Compresses a payload.
///
/// # Errors
/// Memory runs out; these encoders have no other failure.
pub fn pack(payload: &[u8], by: Compression) -> io::Result<Vec<u8>> {
    match by {
        Compression::Zstd => zstd::bulk::compress(payload, ZSTD_LEVEL),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(payload)?;
            encoder.finish()
        }
        Compression::None => Ok(payload.to_vec()),
    }
}

/// Unpacks a blob and checks the payload's length and hash.
///
/// # Errors
/// The blob cannot be unpacked, or length or hash differ.
pub fn unpack(stored: &[u8], by: Compression, len: u64, sha256: &str) -> Result<Vec<u8>, Damage> {
    let payload = match by {
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(stored)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            at_most(decoder, len)?
        }
        Compression::Gzip => at_most(GzDecoder::new(stored), len)?,
        Compression::None => at_most(stored, len)?,
    };
    if payload.len() as u64 != len {
        return Err(Damage::Length { expected: len });
    }
    if sha256_hex(&payload) != sha256 {
        return Err(Damage::Hash);
    }
    Ok(payload)
}

/// Reads everything, or at most one byte more than `len`.
fn at_most(reader: impl Read, len: u64) -> io::Result<Vec<u8>> {
    let mut payload = Vec::new();
    reader
        .take(len.saturating_add(1))
        .read_to_end(&mut payload)?;
    Ok(payload)
}

/// Returns the length of the longest blob that a payload of this length can be packed into.
/// Incompressible data grows by a few bytes per block and by a header.
pub fn stored_bytes_max(len: u64) -> u64 {
    len.saturating_add(len / 64).saturating_add(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Compression; 3] = [Compression::Zstd, Compression::Gzip, Compression::None];

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 88_172_645_463_325_252_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn compressible_payloads_shrink() {
        let payload = b"order 4711, ".repeat(10_000);
        for by in [Compression::Zstd, Compression::Gzip] {
            let stored = pack(&payload, by).unwrap();
            assert!(stored.len() < payload.len() / 50, "{by:?}");
        }
    }

    #[test]
    fn noise_stays_within_its_bound() {
        for len in [0, 1, 100, 65_536, 1 << 20] {
            let payload = noise(len);
            for by in ALL {
                let stored = pack(&payload, by).unwrap().len() as u64;
                let most = stored_bytes_max(len as u64);
                assert!(stored <= most, "{by:?}: {len} -> {stored}");
            }
        }
    }

    /// Megabytes of zeros in a few kilobytes: unpacking stops at the announced length.
    #[test]
    fn a_bomb_is_refused() {
        let zeros = vec![0; 8 << 20];
        for by in [Compression::Zstd, Compression::Gzip] {
            let stored = pack(&zeros, by).unwrap();
            let hash = sha256_hex(&zeros[..100]);
            let refused = unpack(&stored, by, 100, &hash);
            assert!(
                matches!(refused, Err(Damage::Length { expected: 100 })),
                "{by:?}: {refused:?}"
            );
        }
    }

    /// A frame that asks for a huge window is refused before memory is allocated for it.
    #[test]
    fn a_huge_window_is_refused() {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(27).unwrap();
        encoder.write_all(&noise(1 << 20)).unwrap();
        encoder.write_all(&noise(1 << 20)).unwrap();
        let stored = encoder.finish().unwrap();
        let refused = unpack(&stored, Compression::Zstd, 2 << 20, "");
        assert!(matches!(refused, Err(Damage::Unreadable(_))), "{refused:?}");
    }

    #[test]
    fn another_payload_is_refused() {
        for by in ALL {
            let stored = pack(b"fifty euros", by).unwrap();
            let hash = sha256_hex(b"fifty euros");
            assert_eq!(unpack(&stored, by, 11, &hash).unwrap(), b"fifty euros");
            for len in [0, 10, 12, u64::MAX] {
                let refused = unpack(&stored, by, len, &hash);
                assert!(
                    matches!(refused, Err(Damage::Length { .. })),
                    "{by:?} {len}"
                );
            }
            let other = sha256_hex(b"sixty euros");
            let refused = unpack(&stored, by, 11, &other);
            assert!(matches!(refused, Err(Damage::Hash)), "{by:?}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(payload in proptest::collection::vec(any::<u8>(), 0..5000)) {
            for by in ALL {
                let stored = pack(&payload, by).unwrap();
                prop_assert!(stored.len() as u64 <= stored_bytes_max(payload.len() as u64));
                let back = unpack(&stored, by, payload.len() as u64, &sha256_hex(&payload));
                prop_assert_eq!(back.unwrap(), payload.clone());
            }
        }

        /// Random, truncated and changed blobs cause an error within the bounds, never a panic.
        #[test]
        fn damage_is_found(
            payload in proptest::collection::vec(any::<u8>(), 1..500),
            at in any::<prop::sample::Index>(), flip in 1u8.., cut in any::<prop::sample::Index>(),
        ) {
            let hash = sha256_hex(&payload);
            for by in ALL {
                let stored = pack(&payload, by).unwrap();
                let mut changed = stored.clone();
                let at = at.index(changed.len());
                changed[at] ^= flip;
                // Headers contain irrelevant bits (names, times); after such a change the payload
                // is intact.
                if let Ok(same) = unpack(&changed, by, payload.len() as u64, &hash) {
                    prop_assert_eq!(same, payload.clone());
                }
                let cut = &stored[..cut.index(stored.len())];
                let _ = unpack(cut, by, payload.len() as u64, &hash);
                let _ = unpack(&payload, by, 100, &hash);
            }
        }
    }
}
