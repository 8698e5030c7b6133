//! Keys of tables and entities.
//!
//! Entities sort by partition key, then by row key, both in ordinal order of their UTF-16 code
//! units, as the service compares them. UTF-8 sorts differently in one place only: characters with
//! two code units (from U+10000 on) come before U+E000 to U+FFFF in UTF-16. So the first byte of
//! the latter, `0xee` or `0xef`, is written as `0xfe` or `0xff`, which UTF-8 never uses. A zero
//! ends each key; U+0000 and U+0001 are written as two bytes, so that bounds that contain them sort
//! as well.

use super::{ENTITY, ENTITY_PART, Generation, TABLE, key};

const END: u8 = 0;
const ESCAPE: u8 = 1;
/// Second byte of an escaped U+0000; that of U+0001 is one more.
const ESCAPED: u8 = 1;
/// Added to the first UTF-8 byte of U+E000 to U+FFFF.
const LIFT: u8 = 0x10;

/// Returns the key of a table, with its name in lower case. With an empty name, returns where the
/// account's tables start.
pub fn table(account: &str, name: &str) -> Vec<u8> {
    key(TABLE, &[account.as_bytes(), &[0], name.as_bytes()])
}

/// Returns the key of an entity.
pub fn entity(generation: Generation, partition_key: &str, row_key: &str) -> Vec<u8> {
    let mut key = entities(generation);
    key.extend_from_slice(&position(partition_key, row_key));
    key
}

/// Returns the position of an entity within its table: the part of its key after the generation.
pub fn position(partition_key: &str, row_key: &str) -> Vec<u8> {
    let mut place = partition(partition_key);
    push(&mut place, row_key);
    place
}

/// Returns where the entities of a partition start; [`after`](super::after) gives their end.
pub fn partition(partition_key: &str) -> Vec<u8> {
    let mut place = Vec::with_capacity(partition_key.len() + 40);
    push(&mut place, partition_key);
    place
}

/// Returns where the entities of a table start; [`after`](super::after) gives their end.
pub fn entities(generation: Generation) -> Vec<u8> {
    key(ENTITY, &[&generation.to_be_bytes()])
}

/// Returns the key of a further part of the entity with the key `entity`.
pub fn entity_part(entity: &[u8], number: u16) -> Vec<u8> {
    let behind_prefix = entity.get(1..).unwrap_or_default();
    key(ENTITY_PART, &[behind_prefix, &number.to_be_bytes()])
}

/// Returns the key of the entity that a further part belongs to.
pub fn entity_of_part(part: &[u8]) -> Vec<u8> {
    let end = part.len().saturating_sub(size_of::<u16>());
    key(ENTITY, &[part.get(1..end).unwrap_or_default()])
}

/// Returns partition key and row key from the key of an [`entity`].
pub fn entity_names(key: &[u8]) -> (String, String) {
    let mut names = key.get(9..).unwrap_or_default().split(|byte| *byte == END);
    let mut next = || text(names.next().unwrap_or_default());
    (next(), next())
}

fn push(key: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            0 | 1 => key.extend_from_slice(&[ESCAPE, ESCAPED + byte]),
            0xee | 0xef => key.push(byte + LIFT),
            _ => key.push(byte),
        }
    }
    key.push(END);
}

fn text(written: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match *byte {
            ESCAPE => rest.next().map_or(0, |next| next.saturating_sub(ESCAPED)),
            byte @ (0xfe | 0xff) => byte - LIFT,
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::after;
    use super::*;

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    /// Any string, with more of the characters where the two orders differ and of the escaped ones.
    fn texts() -> impl Strategy<Value = String> {
        let odd = prop::sample::select(vec![
            '\0',
            '\u{1}',
            '\u{2}',
            ' ',
            'a',
            '\u{7ff}',
            '\u{d7ff}',
            '\u{e000}',
            '\u{ffff}',
            '\u{10000}',
            '\u{10ffff}',
        ]);
        prop::collection::vec(prop_oneof![odd, any::<char>()], 0..6)
            .prop_map(|all| all.into_iter().collect())
    }

    proptest! {
        #[test]
        fn entities_sort_by_utf16_units_and_round_trip(
            one in (texts(), texts()),
            other in (texts(), texts()),
        ) {
            let key = |names: &(String, String)| entity(7, &names.0, &names.1);
            let order = |names: &(String, String)| (units(&names.0), units(&names.1));
            prop_assert_eq!(key(&one).cmp(&key(&other)), order(&one).cmp(&order(&other)));
            prop_assert_eq!(entity_names(&key(&one)), one.clone());
            let (from, to) = (partition(&one.0), after(partition(&one.0)));
            let place = position(&other.0, &other.1);
            prop_assert_eq!((from..to).contains(&place), one.0 == other.0);
        }
    }

    #[test]
    fn table_range_ends_with_its_generation() {
        let last = entity(7, "\u{ffff}", "\u{ffff}");
        assert!((entities(7)..after(entities(7))).contains(&last));
        assert!(!(entities(7)..after(entities(7))).contains(&entity(8, "", "")));
        assert!(entity_part(&last, 1) < entity_part(&last, 256));
    }
}
