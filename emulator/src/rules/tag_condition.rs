//! The predicate of `x-ms-if-tags`: comparisons of index tags combined with AND, OR and
//! parentheses.
//!
//! Source: "Manage and find Azure Blob data with blob index tags", conditional blob operations.
//! Values are compared as strings. A comparison of a tag that the blob does not have is false.

use std::cmp::Ordering;

use super::tag_parser::{Dialect, parse};

/// A predicate over the tags of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagExpression {
    /// Compares a tag with a value.
    Compare {
        /// Key of the tag.
        key: String,
        /// How the tag's value is compared.
        operator: Operator,
        /// The value to compare with.
        value: String,
    },
    /// True if all parts are true.
    All(Vec<TagExpression>),
    /// True if at least one part is true.
    Any(Vec<TagExpression>),
}

/// A comparison operator.
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
    /// The spelling of each operator, longer ones first, so that a prefix is not mistaken for the
    /// operator.
    pub const SPELLINGS: [(&'static str, Operator); 6] = [
        ("<>", Operator::NotEqual),
        (">=", Operator::AtLeast),
        ("<=", Operator::AtMost),
        ("=", Operator::Equal),
        (">", Operator::Greater),
        ("<", Operator::Less),
    ];

    /// Returns `true` if the operator accepts `order`, the tag's value compared with the given one.
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
    /// Parses a predicate; returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        parse(text, Dialect::Condition).ok()
    }

    /// Returns `true` if these tags satisfy the predicate.
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
            // AND binds more tightly than OR.
            ("tag1='val1' OR n='1' AND n='2'", true),
            ("(tag1='val1' OR n='1') AND n='2'", false),
            // Values compare as strings, not as numbers.
            ("n < '9'", true),
            // There is no such tag: keys are case-sensitive.
            ("missing <> 'x'", false),
            ("TAG1 = 'val1'", false),
        ] {
            let expression = TagExpression::parse(text).expect(text);
            assert_eq!(expression.holds(&tags()), expected, "{text}");
        }
    }

    #[test]
    fn malformed_predicates_are_rejected() {
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
        fn any_text_is_parsed_or_rejected(text in "[ab\"'()<>= ANDORandor]{0,40}") {
            if let Some(expression) = TagExpression::parse(&text) {
                let _ = expression.holds(&tags());
            }
        }
    }
}
