//! The predicate of `x-ms-if-tags`: comparisons of index tags under AND, OR and parentheses.
//!
//! Source: "Manage and find Azure Blob data with blob index tags", conditional blob operations.
//! Values compare as text. A tag that the blob does not have satisfies no comparison.

use std::cmp::Ordering;

use super::tag_parser::{Dialect, parse};

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
    /// How they are written, longer spellings first, so that none is taken for its beginning.
    pub const SPELLINGS: [(&'static str, Operator); 6] = [
        ("<>", Operator::NotEqual),
        (">=", Operator::AtLeast),
        ("<=", Operator::AtMost),
        ("=", Operator::Equal),
        (">", Operator::Greater),
        ("<", Operator::Less),
    ];

    /// Whether it accepts how a tag's value compares with the one given.
    pub fn accepts(self, order: Ordering) -> bool {
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
        parse(text, Dialect::Condition).ok()
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
