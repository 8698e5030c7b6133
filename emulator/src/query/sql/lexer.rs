//! Splits a query into words, numbers, strings and signs.

use smalt_protocol::StorageError;

use super::syntax_error;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(String),
    /// A name in double quotes.
    Quoted(String),
    /// A string in single quotes.
    Text(String),
    Integer(i64),
    Float(f64),
    /// One of `SIGNS`.
    Sign(&'static str),
}

/// Operators and punctuation, longer ones first.
const SIGNS: [&str; 19] = [
    "<=", ">=", "<>", "!=", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", ".",
    ";",
];

impl Token {
    /// Returns `true` for this keyword, in any case.
    pub(super) fn is_word(&self, keyword: &str) -> bool {
        matches!(self, Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }
}

pub(super) fn tokens(query: &str) -> Result<Vec<Token>, StorageError> {
    let mut rest = query;
    let mut tokens = Vec::new();
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return Ok(tokens);
        };
        let next = rest[first.len_utf8()..].chars().next();
        let starts_number =
            first.is_ascii_digit() || (first == '.' && next.is_some_and(|c| c.is_ascii_digit()));
        let (token, after) = match first {
            '\'' => quoted(rest, '\'', Token::Text)?,
            '"' => quoted(rest, '"', Token::Quoted)?,
            // A dot after a name precedes a member, not a fraction.
            _ if starts_number && !(first == '.' && ends_name(&tokens)) => number(rest)?,
            _ if first == '_' || first.is_alphabetic() => word(rest),
            _ => sign(rest)?,
        };
        tokens.push(token);
        rest = after;
    }
}

fn ends_name(tokens: &[Token]) -> bool {
    matches!(
        tokens.last(),
        Some(Token::Word(_) | Token::Quoted(_) | Token::Sign("]"))
    )
}

fn word(text: &str) -> (Token, &str) {
    let end = text
        .find(|c: char| !(c == '_' || c.is_alphanumeric()))
        .unwrap_or(text.len());
    (Token::Word(text[..end].to_owned()), &text[end..])
}

fn sign(text: &str) -> Result<(Token, &str), StorageError> {
    SIGNS
        .into_iter()
        .find_map(|sign| Some((Token::Sign(sign), text.strip_prefix(sign)?)))
        .ok_or_else(syntax_error)
}

/// Reads a quoted token, in which a doubled quote is a literal quote.
fn quoted(
    text: &str,
    quote: char,
    token: fn(String) -> Token,
) -> Result<(Token, &str), StorageError> {
    let mut inside = String::new();
    let mut rest = &text[1..];
    loop {
        let end = rest.find(quote).ok_or_else(syntax_error)?;
        inside.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        let Some(after) = rest.strip_prefix(quote) else {
            return Ok((token(inside), rest));
        };
        inside.push(quote);
        rest = after;
    }
}

/// Reads digits with an optional fraction and exponent. An integer beyond 64 bits becomes a float.
fn number(text: &str) -> Result<(Token, &str), StorageError> {
    let digits = |from: usize| {
        let tail = text.get(from..).unwrap_or_default();
        from + tail.bytes().take_while(u8::is_ascii_digit).count()
    };
    let whole = digits(0);
    let mut end = whole;
    if text[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let signed = text[end + 1..].starts_with(['+', '-']);
        let from = end + 1 + usize::from(signed);
        let until = digits(from);
        if until == from {
            return Err(syntax_error());
        }
        end = until;
    }
    let (shown, rest) = text.split_at(end);
    if rest.starts_with(|c: char| c == '_' || c.is_alphabetic()) {
        return Err(syntax_error());
    }
    let integer = (end == whole).then(|| shown.parse().ok()).flatten();
    let token = match integer {
        Some(integer) => Token::Integer(integer),
        None => Token::Float(shown.parse().map_err(|_| syntax_error())?),
    };
    Ok((token, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_a_query_into_tokens() {
        let text = |text: &str| Token::Text(text.to_owned());
        let word = |word: &str| Token::Word(word.to_owned());
        for (query, expected) in [
            (
                "_1>=2.5",
                vec![word("_1"), Token::Sign(">="), Token::Float(2.5)],
            ),
            ("'it''s' ''", vec![text("it's"), text("")]),
            (
                "a.\"b c\"",
                vec![word("a"), Token::Sign("."), Token::Quoted("b c".to_owned())],
            ),
            ("1e3 .5", vec![Token::Float(1000.0), Token::Float(0.5)]),
            ("99999999999999999999", vec![Token::Float(1e20)]),
            ("", vec![]),
        ] {
            assert_eq!(tokens(query).unwrap(), expected, "{query}");
        }
        for wrong in ["'open", "\"open", "1a", "1e", "#", "a ! b"] {
            assert!(tokens(wrong).is_err(), "{wrong}");
        }
    }
}
