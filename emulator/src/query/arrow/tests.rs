//! Arrow: the bytes of small streams, and the conversion of values.

use super::*;

fn writer(kind: Kind) -> Writer {
    Writer::new(vec![Field {
        name: "abc".to_owned(),
        kind,
    }])
}

const DECIMAL: Kind = Kind::Decimal {
    precision: 4,
    scale: 2,
};

/// The lengths and the columns' bytes are those of the recordings.
#[test]
fn output_matches_the_recording() {
    let mut writer = writer(DECIMAL);
    let begin = writer.begin();
    assert_eq!(begin.len(), 248);
    assert_eq!(begin[..8], [0xff, 0xff, 0xff, 0xff, 0x78, 0, 0, 0]);
    assert_eq!(begin[128..136], [0xff, 0xff, 0xff, 0xff, 0x70, 0, 0, 0]);
    assert_eq!(writer.flush(), None);
    writer.row([Value::text("400")].into_iter()).unwrap();
    let batch = writer.flush().unwrap();
    assert_eq!(batch.len(), 160);
    assert_eq!(batch[..8], [0xff, 0xff, 0xff, 0xff, 0x88, 0, 0, 0]);
    assert_eq!(batch[144..], 400_i128.to_le_bytes());
    assert_eq!(writer.flush(), None);
}

#[test]
fn decimals_are_scaled_and_bounded() {
    for (text, expected) in [
        ("400", Some(400)),
        ("-4.5", Some(-450)),
        ("4.05", Some(405)),
        ("4.055", None),
        ("10000", None),
        ("x", None),
        ("4.x", None),
    ] {
        assert_eq!(decimal(text, 4, 2), expected, "{text}");
    }
    assert_eq!(Kind::parse("decimal", 39, 0), None);
    assert_eq!(Kind::parse("decimal", 4, 5), None);
    assert_eq!(Kind::parse("int32", 0, 0), None);
}

#[test]
fn rejected_row_leaves_no_values() {
    let field = |kind| Field {
        name: String::new(),
        kind,
    };
    let mut writer = Writer::new(vec![field(Kind::Text), field(Kind::Integer)]);
    let row = |second: &str| [Value::text("a"), Value::text(second)].into_iter();
    assert_eq!(writer.row(row("x")), Err(Fault::InvalidTypeConversion));
    assert_eq!((writer.held_bytes(), writer.flush()), (0, None));
    writer.row(row("7")).unwrap();
    assert_eq!(writer.row(row("x")), Err(Fault::InvalidTypeConversion));
    writer.row(std::iter::empty::<Value<'_>>()).unwrap();
    let batch = writer.flush().unwrap();
    // Validity, three offsets, text; validity, two numbers: each padded to a multiple of eight.
    let body = &batch[batch.len() - (8 + 16 + 8 + 8 + 16)..];
    assert_eq!(body[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(body[8..20], [0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!((body[24], body[40]), (b'a', 7));
}
