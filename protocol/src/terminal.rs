//! Text that strangers wrote, shown on a terminal or in a log: nothing in it may steer either.
//!
//! Names of blobs, bodies of messages, metadata and answers of other servers are other people's
//! text. An escape sequence in them could recolour or erase what an operator reads, a line feed
//! could forge a line of a log, a mark of direction could show one name as another. JSON has its
//! own escapes and needs none of this.

use std::borrow::Cow;
use std::fmt;

/// Whether a character acts on a terminal or on the order of a line instead of being shown there:
/// control characters (C0, DEL and C1), separators of lines and paragraphs, marks of direction
/// (Unicode Standard Annex 9) and the byte order mark.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
        )
}

/// The text as part of one line: each character that [`steers`] is written as Rust writes it in a
/// literal, such as `\n` or `\u{1b}`.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, steers, rust)
}

/// The text as lines: line feeds stay, everything else is as in [`one_line`].
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && steers(c), rust)
}

/// A JSON document for people: what its writer left as it is within strings, such as U+009B or a
/// mark of direction, is written as JSON's own escape. It is the same document.
pub fn json(document: &str) -> Cow<'_, str> {
    let escape = |c, shown: &mut String| {
        let mut units = [0; 2];
        for unit in char::encode_utf16(c, &mut units) {
            shown.push_str(&format!("\\u{unit:04x}"));
        }
    };
    escaped(document, |c| c != '\n' && steers(c), escape)
}

fn rust(c: char, shown: &mut String) {
    match c {
        '\n' | '\r' | '\t' => shown.extend(c.escape_default()),
        c => shown.extend(c.escape_unicode()),
    }
}

fn escaped(
    text: &str,
    hides: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.chars().any(&hides) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match hides(c) {
            true => escape(c, &mut shown),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Writes a field of a line of a log in text form: `name=value`, the message without its name.
/// Values that are shown by `Display` arrive here unescaped.
///
/// # Errors
/// When `out` refuses.
pub fn write_field(
    out: &mut dyn fmt::Write,
    name: &str,
    value: &dyn fmt::Debug,
) -> Result<(), fmt::Error> {
    let value = format!("{value:?}");
    match name {
        "message" => write!(out, "{}", one_line(&value)),
        name => write!(out, "{name}={}", one_line(&value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn characters_that_steer_are_escaped() {
        for (text, shown) in [
            ("plain é 名 😀 a\\b", "plain é 名 😀 a\\b"),
            ("\u{1b}[31mRED", "\\u{1b}[31mRED"),
            (
                "\u{9b}31m \u{9d}0;title\u{9c}",
                "\\u{9b}31m \\u{9d}0;title\\u{9c}",
            ),
            (
                "a\r\nERROR forged\t\0\u{7f}",
                "a\\r\\nERROR forged\\t\\u{0}\\u{7f}",
            ),
            ("\u{85}\u{2028}\u{2029}", "\\u{85}\\u{2028}\\u{2029}"),
            (
                "gpj\u{202e}exe \u{2066}x\u{2069}",
                "gpj\\u{202e}exe \\u{2066}x\\u{2069}",
            ),
            (
                "\u{200e}\u{200f}\u{61c}\u{feff}",
                "\\u{200e}\\u{200f}\\u{61c}\\u{feff}",
            ),
        ] {
            assert_eq!(one_line(text), shown);
        }
        assert_eq!(lines("a\nb\u{1b}\r"), "a\nb\\u{1b}\\r");
        assert_eq!(
            json("{\n\"a\": \"\u{9b}\u{202e}\"}"),
            "{\n\"a\": \"\\u009b\\u202e\"}"
        );
    }

    #[test]
    fn fields_of_a_log_line_are_escaped() {
        let mut line = String::new();
        write_field(&mut line, "message", &format_args!("a\u{1b}b\nc")).unwrap();
        write_field(&mut line, " reason", &format_args!("x\u{202e}")).unwrap();
        write_field(&mut line, " blob", &"q\"\u{9b}").unwrap();
        assert_eq!(
            line,
            "a\\u{1b}b\\nc reason=x\\u{202e} blob=\"q\\\"\\u{9b}\""
        );
    }

    proptest! {
        #[test]
        fn no_text_steers(text in "[\\PC\\x00-\\u{a0}\\u{2000}-\\u{2070}]{0,40}") {
            prop_assert!(!one_line(&text).chars().any(steers));
            prop_assert!(!lines(&text).chars().any(|c| c != '\n' && steers(c)));
            let shown = one_line(&text);
            prop_assert_eq!(&one_line(&shown), &shown);
        }
    }
}
