//! Removes comments and the contents of quotes from source code, so that rules about code ignore
//! prose. Lines and columns keep their positions.

/// Returns `text` with comments and the contents of quotes blanked.
pub(crate) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let (shown, hidden) = match first {
            '/' if rest.starts_with("//") => (0, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => (0, block_comment(rest)),
            '"' => (1, quoted(&rest[1..])),
            'r' if !is_word(before) || before == 'b' => raw(rest),
            '\'' => character(rest),
            _ => (first.len_utf8(), 0),
        };
        out.push_str(&rest[..shown]);
        out.extend(rest[shown..shown + hidden].chars().map(blank));
        before = rest[..shown + hidden].chars().next_back().unwrap_or(' ');
        rest = &rest[shown + hidden..];
    }
    out
}

fn blank(c: char) -> char {
    if c == '\n' { c } else { ' ' }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length in bytes of a block comment, which may be nested.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Returns the length in bytes up to the closing quote.
fn quoted(inside: &str) -> usize {
    let mut escaped = false;
    for (at, c) in inside.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    inside.len()
}

/// Returns the length of a raw string's opening and of its content, or that of the letter `r`.
fn raw(rest: &str) -> (usize, usize) {
    let hashes = rest[1..].bytes().take_while(|b| *b == b'#').count();
    let open = 1 + hashes;
    if rest.as_bytes().get(open) != Some(&b'"') {
        return (1, 0);
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let inside = &rest[open + 1..];
    let length = inside
        .find(&close)
        .map_or(inside.len(), |at| at + close.len());
    (open + 1, length)
}

/// Returns the length of a character literal's quote and its content, or that of a lifetime's tick.
fn character(rest: &str) -> (usize, usize) {
    let inside = &rest[1..];
    let mut chars = inside.char_indices();
    let first = chars.next().map(|(_, c)| c);
    if first == Some('\\') {
        // The escaped character may be a quote.
        let close = inside.get(2..).and_then(|tail| tail.find('\''));
        return (1, close.map_or(0, |at| at + 3));
    }
    match chars.next() {
        Some((at, '\'')) => (1, at + 1),
        _ => (1, 0),
    }
}

#[test]
fn comments_and_quotes_are_blanked() {
    let cases = [
        ("a(); // sleep()", "a();           "),
        ("a(/* b /* c */ d */ e)", "a(                  e)"),
        ("a(\"std::fs\", b)", "a(\"        , b)"),
        (r#"a("x\"sled", b)"#, r#"a("        , b)"#),
        ("a(r#\"x\"sled\"#, b)", "a(r#\"        , b)"),
        ("a(br\"sled\", b)", "a(br\"     , b)"),
        ("let var = '\"'; sled", "let var = '  ; sled"),
        (r"a('\'', sled)", r"a('   , sled)"),
        ("fn a<'a>(b: &'a str) {}", "fn a<'a>(b: &'a str) {}"),
        ("for x in r { \"y\" }", "for x in r { \"   }"),
        ("\"one\n  two\" three", "\"   \n       three"),
        ("/// Sled's own.\nsled", "               \nsled"),
        ("\"it\u{2019}s\" x", "\"      x"),
    ];
    for (text, expected) in cases {
        assert_eq!(code(text).replace('\u{2019}', "?"), expected, "{text}");
    }
}
