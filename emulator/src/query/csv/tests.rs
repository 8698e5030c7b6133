//! Delimited text: parsing, quoting, and reading back what was written.

use proptest::prelude::*;

use super::*;

type Records = Vec<Vec<String>>;

fn read(dialect: &Dialect, pieces: &[&[u8]]) -> Records {
    let mut reader = Reader::new(dialect.clone());
    let mut records = Records::new();
    let row = |reader: &Reader| {
        let fields = reader.fields().iter();
        fields
            .map(|field| String::from_utf8_lossy(field).into_owned())
            .collect()
    };
    for piece in pieces {
        let mut input = *piece;
        while reader.next(&mut input).unwrap() {
            records.push(row(&reader));
        }
    }
    if reader.finish() {
        records.push(row(&reader));
    }
    records
}

fn dialect(column: &str, record: &str, quote: Option<u8>, escape: Option<u8>) -> Dialect {
    Dialect {
        column: column.to_owned(),
        record: record.to_owned(),
        quote,
        escape,
        has_headers: false,
    }
}

#[test]
fn reads_records() {
    let plain = Dialect::default();
    let bang = dialect(".", "!", Some(b'"'), None);
    let long = dialect("||", "\r\n", Some(b'\''), None);
    let bare = dialect(",", "\n", None, None);
    let escaping = dialect(",", "\n", Some(b'"'), Some(b'\\'));
    for (dialect, text, expected) in [
        (&plain, "a,b\nc,d\n", &[&["a", "b"][..], &["c", "d"]][..]),
        (&plain, "a,b\r\nc\r", &[&["a", "b"], &["c\r"]]),
        (&plain, "\"a,\"\"b\nc\",d", &[&["a,\"b\nc", "d"]]),
        (&plain, "\"a\"x,b\"c\"", &[&["ax", "b\"c\""]]),
        (&plain, "\"a\r\"\n", &[&["a\r"]]),
        (&plain, "a,\n\nb", &[&["a", ""], &[""], &["b"]]),
        (&plain, "\"\"", &[&[""]]),
        (&plain, "", &[]),
        (&bang, "100.200!150.", &[&["100", "200"], &["150", ""]]),
        (&long, "a||b|c\r\n'x||y'\r\n", &[&["a", "b|c"], &["x||y"]]),
        (&bare, "\"a,b\"\n", &[&["\"a", "b\""]]),
        (&escaping, "a\\,b,\"c\\\"d\"\\\n", &[&["a,b", "c\"d\n"]]),
    ] {
        assert_eq!(read(dialect, &[text.as_bytes()]), expected, "{text:?}");
    }
}

#[test]
fn quotes_only_where_necessary() {
    let dotted = dialect(";", ".", Some(b'\''), Some(b'\\'));
    let plain = Dialect::default();
    let bare = dialect(",", "\n", None, Some(b'\\'));
    for (dialect, field, expected) in [
        (&plain, "plain text", "plain text"),
        (&plain, "a,b", "\"a,b\""),
        (&plain, "say \"hi\"", "\"say \"\"hi\"\"\""),
        (&dotted, "1.0.1", "'1.0.1'"),
        (&dotted, "it's", "'it\\'s'"),
        (&bare, "a,b", "a\\,b"),
    ] {
        let mut out = Vec::new();
        Writer::new(dialect.clone()).field(&mut out, 0, field.as_bytes());
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}

fn dialects() -> impl Strategy<Value = Dialect> {
    let columns = prop_oneof![Just(","), Just(";"), Just("||"), Just("\t")];
    let records = prop_oneof![Just("\n"), Just("!"), Just("\r\n"), Just("<>")];
    let quotes = prop_oneof![Just(Some(b'"')), Just(Some(b'\''))];
    let escapes = prop_oneof![Just(None), Just(Some(b'\\'))];
    (columns, records, quotes, escapes).prop_map(|(c, r, q, e)| dialect(c, r, q, e))
}

proptest! {
    #[test]
    fn reads_what_it_writes(
        dialect in dialects(),
        records in prop::collection::vec(
            prop::collection::vec("[ab,;|!<>\"'\\\\\r\n\té]{0,6}", 1..4), 0..6),
        cut in 0_usize..64,
    ) {
        let writer = Writer::new(dialect.clone());
        let mut out = Vec::new();
        for record in &records {
            for (index, field) in record.iter().enumerate() {
                writer.field(&mut out, index, field.as_bytes());
            }
            writer.end(&mut out);
        }
        let (first, second) = out.split_at(cut.min(out.len()));
        prop_assert_eq!(read(&dialect, &[first, second]), records);
    }

    /// Any bytes give the same records in one piece and in many.
    #[test]
    fn reads_any_bytes(dialect in dialects(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(read(&dialect, &[&bytes]), read(&dialect, &pieces));
    }
}
