//! Serialises the bytes of a record as one MessagePack value instead of a list of numbers:
//! `#[serde(with)]`.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    deserializer.deserialize_byte_buf(Bytes)
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::records::{BlockListChunk, CommittedBlock, Record};

    #[test]
    fn block_id_is_stored_as_bytes() {
        let block = |id: Vec<u8>| BlockListChunk {
            start: 0,
            blocks: vec![CommittedBlock {
                id,
                length: 1,
                payload: None,
            }],
        };
        let (short, long) = (block(vec![0xff]), block(vec![0xff; 65]));
        let length = |chunk: &BlockListChunk| chunk.encode().unwrap().len();
        assert_eq!(length(&long) - length(&short), 64);
        assert_eq!(
            BlockListChunk::decode(&long.encode().unwrap()).unwrap(),
            long
        );
    }
}
