//! Avro object container files: the answers of Query Blob Contents.
//!
//! The service determines everything in them except the sync marker after each block, which the
//! server draws anew for every file. A file whose blocks all end with the marker of its head is
//! compared byte by byte without the markers; any other file is compared as it is.

use bytes::Bytes;

const MAGIC: &[u8] = b"Obj\x01";
const MARKER_BYTES: usize = 16;

/// Returns the file with blank markers; `None` for anything else and for a truncated file.
pub fn unmarked(file: &[u8]) -> Option<Bytes> {
    let mut rest = file.strip_prefix(MAGIC)?;
    // The head is a map in blocks, each with a count of entries; an empty block ends it.
    loop {
        let entries = usize::try_from(long(&mut rest)?).ok()?;
        if entries == 0 {
            break;
        }
        for _ in 0..entries {
            // A name and a value.
            take_bytes(&mut rest)?;
            take_bytes(&mut rest)?;
        }
    }
    let head_bytes = file.len() - rest.len();
    let marker = rest.get(..MARKER_BYTES)?;
    let mut out = file[..head_bytes].to_vec();
    out.extend_from_slice(&[0; MARKER_BYTES]);
    rest = &rest[MARKER_BYTES..];
    while !rest.is_empty() {
        let block = rest;
        long(&mut rest)?;
        take_bytes(&mut rest)?;
        out.extend_from_slice(&block[..block.len() - rest.len()]);
        rest = rest.strip_prefix(marker)?;
        out.extend_from_slice(&[0; MARKER_BYTES]);
    }
    Some(out.into())
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(long(rest)?).ok()?;
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

/// Reads a zigzag-encoded number with seven bits per byte.
fn long(rest: &mut &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(marker: u8, data: &[u8], last: u8) -> Vec<u8> {
        let marker = [marker; MARKER_BYTES];
        let mut file = b"Obj\x01\x02\x02a\x02b\x00".to_vec();
        file.extend_from_slice(&marker);
        file.extend_from_slice(&[2, (data.len() * 2) as u8]);
        file.extend_from_slice(data);
        file.extend_from_slice(&[last; MARKER_BYTES]);
        file
    }

    #[test]
    fn only_the_marker_may_differ() {
        let some = unmarked(&file(1, b"xyz", 1));
        assert!(some.is_some());
        assert_eq!(some, unmarked(&file(2, b"xyz", 2)));
        assert_ne!(some, unmarked(&file(1, b"xyy", 1)));
        assert_eq!(unmarked(&file(1, b"xyz", 2)), None);
        assert_eq!(unmarked(b"Obj\x01\x02\x02a"), None);
        assert_eq!(unmarked(b"a,b\n"), None);
    }
}
