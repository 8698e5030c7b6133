//! The predicate of `x-ms-if-tags`: comparisons of index tags under AND, OR and parentheses.
//!
//! Source: "Manage and find Azure Blob data with blob index tags", conditional blob operations.
//! `"key" op 'value'` with `=`, `<>`, `>`, `>=`, `<`, `<=`; quotes around a simple key may be left
//! out, as recordings do. Values compare as text. AND binds closer than OR. A tag that the blob
//! does not have satisfies no comparison.

use std::cmp::Ordering;

/// Nesting that is still read: ours, many times what the ten tags of a blob need.
const DEPTH_MAX: usize = 16;

/// A predicate over the tags of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagExpression {
    /// A tag compared with a value.
    Compare {
        /// Key of the tag.
        key: String,
        /// Comparison.
        operator: Operator,
        /// Value compared with.
        value: String,
    },
    /// All hold.
    All(Vec<TagExpression>),
    /// One at least holds.
    Any(Vec<TagExpression>),
}

/// A comparison of a tag's value with the one given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `<`
    Less,
    /// `<=`
    AtMost,
}

impl Operator {
    /// Longer spellings first, so that none is taken for its beginning.
    const SPELLINGS: [(&'static str, Operator); 6] = [
        ("<>", Operator::NotEqual),
        (">=", Operator::AtLeast),
        ("<=", Operator::AtMost),
        ("=", Operator::Equal),
        (">", Operator::Greater),
        ("<", Operator::Less),
    ];

    fn accepts(self, order: Ordering) -> bool {
        match self {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Greater => order.is_gt(),
            Operator::AtLeast => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::AtMost => order.is_le(),
        }
    }
}

impl TagExpression {
    /// Reads a predicate; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let expression = any(&mut rest, 0)?;
        rest.trim_start().is_empty().then_some(expression)
    }

    /// Whether it holds for these tags.
    pub fn holds(&self, tags: &[(String, String)]) -> bool {
        match self {
            TagExpression::Compare {
                key,
                operator,
                value,
            } => {
                let tag = tags.iter().find(|(own, _)| own == key);
                tag.is_some_and(|(_, own)| operator.accepts(own.as_str().cmp(value)))
            }
            TagExpression::All(parts) => parts.iter().all(|part| part.holds(tags)),
            TagExpression::Any(parts) => parts.iter().any(|part| part.holds(tags)),
        }
    }
}

fn any(rest: &mut &str, depth: usize) -> Option<TagExpression> {
    let mut parts = vec![all(rest, depth)?];
    while word(rest, "or") {
        parts.push(all(rest, depth)?);
    }
    Some(one_or(parts, TagExpression::Any))
}

fn all(rest: &mut &str, depth: usize) -> Option<TagExpression> {
    let mut parts = vec![comparison(rest, depth)?];
    while word(rest, "and") {
        parts.push(comparison(rest, depth)?);
    }
    Some(one_or(parts, TagExpression::All))
}

fn one_or(
    mut parts: Vec<TagExpression>,
    several: impl Fn(Vec<TagExpression>) -> TagExpression,
) -> TagExpression {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            several(parts)
        }
        None => several(parts),
    }
}

fn comparison(rest: &mut &str, depth: usize) -> Option<TagExpression> {
    if depth >= DEPTH_MAX {
        return None;
    }
    if symbol(rest, "(") {
        let inside = any(rest, depth + 1)?;
        return symbol(rest, ")").then_some(inside);
    }
    let key = key(rest)?;
    let (_, operator) = Operator::SPELLINGS
        .into_iter()
        .find(|(spelling, _)| symbol(rest, spelling))?;
    let value = quoted(rest, '\'')?;
    Some(TagExpression::Compare {
        key,
        operator,
        value,
    })
}

fn key(rest: &mut &str) -> Option<String> {
    *rest = rest.trim_start();
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let (key, behind) = rest.split_at(end);
    *rest = behind;
    (!key.is_empty()).then(|| key.to_owned())
}

fn quoted(rest: &mut &str, quote: char) -> Option<String> {
    let (text, behind) = rest.trim_start().strip_prefix(quote)?.split_once(quote)?;
    *rest = behind;
    Some(text.to_owned())
}

fn symbol(rest: &mut &str, symbol: &str) -> bool {
    match rest.trim_start().strip_prefix(symbol) {
        Some(behind) => {
            *rest = behind;
            true
        }
        None => false,
    }
}

/// Takes a keyword that is not merely the beginning of a longer word.
fn word(rest: &mut &str, word: &str) -> bool {
    let text = rest.trim_start();
    let Some((head, behind)) = text.split_at_checked(word.len()) else {
        return false;
    };
    let ends = !behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let found = head.eq_ignore_ascii_case(word) && ends;
    if found {
        *rest = behind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tags() -> Vec<(String, String)> {
        let pairs = [("tag1", "val1"), ("tag 2", "b"), ("n", "10")];
        pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec()
    }

    #[test]
    fn predicates_hold_or_not() {
        for (text, expected) in [
            ("tag1 = 'val1'", true),
            ("\"tag1\"='val2'", false),
            ("\"tag 2\" >= 'b' AND tag1 <> 'x'", true),
            ("\"tag 2\" > 'b' OR tag1='val1'", true),
            ("\"tag 2\" > 'b' or tag1 < 'a'", false),
            // AND binds closer.
            ("tag1='val1' OR n='1' AND n='2'", true),
            ("(tag1='val1' OR n='1') AND n='2'", false),
            // Text, not numbers.
            ("n < '9'", true),
            // No tag of this name, and names have case.
            ("missing <> 'x'", false),
            ("TAG1 = 'val1'", false),
        ] {
            let expression = TagExpression::parse(text).expect(text);
            assert_eq!(expression.holds(&tags()), expected, "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_predicate() {
        let deep = "(".repeat(5_000);
        for text in [
            "",
            "tag1",
            "tag1 =",
            "tag1 = val1",
            "tag1 = 'val1",
            "= 'val1'",
            "tag1 = 'a' AND",
            "tag1 = 'a' tag1 = 'b'",
            "tag1 = 'a' ANDtag1 = 'b'",
            "(tag1 = 'a'",
            "tag1 == 'a'",
            deep.as_str(),
        ] {
            assert_eq!(TagExpression::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ab\"'()<>= ANDORandor]{0,40}") {
            if let Some(expression) = TagExpression::parse(&text) {
                let _ = expression.holds(&tags());
            }
        }
    }
}
