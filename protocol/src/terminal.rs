//! Escapes untrusted text before it is shown on a terminal or written to a log.
//!
//! Names of blobs, bodies of messages, metadata and answers of other servers are untrusted. An
//! escape sequence in them could recolour or erase what an operator reads, a line feed could forge
//! a log line, and a bidirectional mark could show one name as another. JSON has escapes of its own
//! and needs none of this.

use std::borrow::Cow;
use std::fmt;

/// Returns whether a terminal acts on the character instead of displaying it: control characters
/// (C0, DEL and C1), line and paragraph separators, bidirectional marks (Unicode Standard Annex 9)
/// and the byte order mark.
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

/// Escapes the text for use within one line: each character that [`steers`] is written as in a Rust
/// literal, such as `\n` or `\u{1b}`.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, steers, rust)
}

/// Escapes the text like [`one_line`], but keeps line feeds.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && steers(c), rust)
}

/// Escapes a JSON document for display: control characters and bidirectional marks within strings,
/// such as U+009B, become JSON escapes. The result is the same document.
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

/// Writes a field of a log line in text form: `name=value`, or only the value for the message.
/// Values that are shown by `Display` are escaped here.
///
/// # Errors
/// When writing to `out` fails.
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
    fn control_and_bidirectional_characters_are_escaped() {
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
        fn no_output_can_steer(text in "[\\PC\\x00-\\u{a0}\\u{2000}-\\u{2070}]{0,40}") {
            prop_assert!(!one_line(&text).chars().any(steers));
            prop_assert!(!lines(&text).chars().any(|c| c != '\n' && steers(c)));
            let shown = one_line(&text);
            prop_assert_eq!(&one_line(&shown), &shown);
        }
    }
}
