//! The query of Find Blobs by Tags: comparisons of tags that all have to hold, optionally within
//! one container.
//!
//! Source: "Find Blobs by Tags", constructing a search expression. A tag is compared once, or has a
//! range: one lower and one upper bound.

use std::collections::BTreeSet;

use smalt_protocol::StorageError;

use super::tag_condition::{Operator, TagExpression};
use super::tag_parser::{CONTAINER, Dialect, parse};

/// Maximum number of different tags in a query, which is as many as a blob can have.
const TAGS_MAX: usize = 10;
const WHERE: &str = "where";

/// A comparison of a tag with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Key of the tag.
    pub key: String,
    /// How the tag's value is compared.
    pub operator: Operator,
    /// The value to compare with.
    pub value: String,
}

/// A query; a blob matches if every comparison holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagQuery {
    /// The container to search; `None` for all.
    pub container: Option<String>,
    /// Never empty.
    comparisons: Vec<Comparison>,
}

/// The range of values of one tag to look up in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values<'a> {
    /// Key of the tag.
    pub key: &'a str,
    /// Lower bound, and whether it is inclusive; `None` if unbounded.
    pub least: Option<(&'a str, bool)>,
    /// Upper bound, and whether it is inclusive; `None` if unbounded.
    pub most: Option<(&'a str, bool)>,
}

impl TagQuery {
    /// Parses the parameter `where`.
    ///
    /// # Errors
    /// 400 `InvalidQueryParameterValue` in the service's words.
    pub fn parse(text: &str) -> Result<Self, StorageError> {
        let expression = parse(text, Dialect::Query).map_err(|unexpected| {
            let (position, problem) = (unexpected.position, unexpected.problem);
            let place = format!("at or near character position {position}");
            refused(text, &format!(" {place}: {problem}"))
        })?;
        let mut comparisons = Vec::new();
        flatten(expression, &mut comparisons);
        let (containers, comparisons): (Vec<_>, Vec<_>) = comparisons
            .into_iter()
            .partition(|one| one.key == CONTAINER);
        let query = TagQuery {
            container: containers.first().map(|one| one.value.clone()),
            comparisons,
        };
        let keys: BTreeSet<_> = query.keys().collect();
        if keys.len() > TAGS_MAX {
            let reason = ": there can be at most 10 unique tags in a query";
            return Err(refused(text, reason));
        }
        if containers.len() > 1 || keys.into_iter().any(|key| !query.is_one_range(key)) {
            let reason = ": can't have multiple conditions for a single tag unless they define a \
                          range";
            return Err(refused(text, reason));
        }
        if query.comparisons.is_empty() {
            return Err(refused(text, ": no tag is compared"));
        }
        Ok(query)
    }

    /// Returns the error for a query that names a container although the URI has one.
    pub fn names_container_twice(text: &str) -> StorageError {
        refused(text, ": Cannot have container in both uri and query")
    }

    /// Returns the compared keys; a key with a range appears twice.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.comparisons.iter().map(|one| one.key.as_str())
    }

    /// Returns `true` if these tags satisfy every comparison.
    pub fn holds(&self, tags: &[(String, String)]) -> bool {
        let holds = |one: &Comparison| {
            let tag = tags.iter().find(|(key, _)| *key == one.key);
            tag.is_some_and(|(_, own)| one.operator.accepts(own.as_str().cmp(&one.value)))
        };
        self.comparisons.iter().all(holds)
    }

    /// Returns the range to look up in the index: the first tag with an exact value, else the first
    /// with both bounds, else the first.
    pub fn driver(&self) -> Values<'_> {
        let is_exact = |values: &&Values<'_>| values.least.is_some() && values.least == values.most;
        let is_bounded = |values: &&Values<'_>| values.least.is_some() && values.most.is_some();
        let all: Vec<Values<'_>> = self.keys().map(|key| self.values(key)).collect();
        let best = all.iter().find(is_exact);
        let best = best.or_else(|| all.iter().find(is_bounded));
        best.or(all.first()).cloned().unwrap_or(Values {
            key: "",
            least: None,
            most: None,
        })
    }

    fn values<'a>(&'a self, key: &'a str) -> Values<'a> {
        let bound = |accepts: fn(Operator) -> bool| {
            let found = self.of_key(key).find(|one| accepts(one.operator))?;
            let is_open = matches!(found.operator, Operator::Less | Operator::Greater);
            Some((found.value.as_str(), !is_open))
        };
        Values {
            key,
            least: bound(bounds_below),
            most: bound(bounds_above),
        }
    }

    fn is_one_range(&self, key: &str) -> bool {
        let count = |bounds: fn(Operator) -> bool| {
            self.of_key(key).filter(|one| bounds(one.operator)).count()
        };
        count(bounds_below) <= 1 && count(bounds_above) <= 1
    }

    fn of_key<'a>(&'a self, key: &str) -> impl Iterator<Item = &'a Comparison> {
        self.comparisons.iter().filter(move |one| one.key == key)
    }
}

fn bounds_below(operator: Operator) -> bool {
    use Operator::{AtLeast, Equal, Greater};
    matches!(operator, Equal | Greater | AtLeast)
}

fn bounds_above(operator: Operator) -> bool {
    use Operator::{AtMost, Equal, Less};
    matches!(operator, Equal | Less | AtMost)
}

/// Collects the comparisons of an expression without OR.
fn flatten(expression: TagExpression, into: &mut Vec<Comparison>) {
    match expression {
        TagExpression::Compare {
            key,
            operator,
            value,
        } => into.push(Comparison {
            key,
            operator,
            value,
        }),
        TagExpression::All(parts) | TagExpression::Any(parts) => {
            parts.into_iter().for_each(|part| flatten(part, into));
        }
    }
}

fn refused(text: &str, reason: &str) -> StorageError {
    StorageError::invalid_query(WHERE, text, &format!("Error parsing query{reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tags(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        owned.collect()
    }

    #[test]
    fn queries_hold_or_not() {
        let tags = tags(&[("age", "32"), ("tag 2", "b")]);
        for (text, expected) in [
            ("age = '32'", true),
            ("\"tag 2\"='b' and age >= '32'", true),
            ("age > '31' AND age < '33'", true),
            ("(age > '31' AND (age <= '31'))", false),
            ("Age = '32'", false),
            ("@container='c' AND age='32'", true),
        ] {
            assert_eq!(
                TagQuery::parse(text).unwrap().holds(&tags),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn index_lookup_uses_the_narrowest_tag() {
        for (text, key, least, most) in [
            (
                "a > '1' AND b = '2'",
                "b",
                Some(("2", true)),
                Some(("2", true)),
            ),
            (
                "a > '1' AND b < '2' AND b >= '1'",
                "b",
                Some(("1", true)),
                Some(("2", false)),
            ),
            ("a > '1' AND b < '2'", "a", Some(("1", false)), None),
            ("a <= '1'", "a", None, Some(("1", true))),
        ] {
            let query = TagQuery::parse(text).unwrap();
            assert_eq!(query.driver(), Values { key, least, most }, "{text}");
        }
    }

    /// "There can be at most 10 unique tags in a query": a range counts as one tag, and the
    /// container does not count.
    #[test]
    fn ten_tags_can_be_compared() {
        let bounds = (0..10).flat_map(|n| [format!("t{n}>='1'"), format!("t{n}<'2'")]);
        let whole: Vec<_> = bounds.chain(["@container='c'".to_owned()]).collect();
        let query = TagQuery::parse(&whole.join(" AND ")).unwrap();
        assert_eq!(query.keys().count(), 20);
        assert_eq!(query.container.as_deref(), Some("c"));
    }

    #[test]
    fn invalid_query_gets_the_message_of_the_service() {
        let eleven: Vec<_> = (0..11).map(|n| format!("t{n}='1'")).collect();
        let eleven = eleven.join(" AND ");
        for (text, reason) in [
            (
                "a='1' AND (b='1' OR b='2')",
                "Error parsing query at or near character position 18: unexpected 'OR'",
            ),
            (
                "a > '1' AND a > '2'",
                "Error parsing query: can't have multiple conditions for a single tag unless they \
                 define a range",
            ),
            (
                "a = '1' AND a < '2'",
                "Error parsing query: can't have multiple conditions for a single tag unless they \
                 define a range",
            ),
            (
                eleven.as_str(),
                "Error parsing query: there can be at most 10 unique tags in a query",
            ),
            ("@container='c'", "Error parsing query: no tag is compared"),
        ] {
            let error = TagQuery::parse(text).unwrap_err();
            assert_eq!(error.status(), 400);
            let told = error.elements().last().cloned();
            assert_eq!(told, Some(("Reason", reason.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn index_lookup_covers_the_query(
            operators in proptest::collection::vec(0_usize..6, 1..3),
            bounds in proptest::collection::vec("[ab]{0,2}", 3),
            value in "[ab]{0,2}",
        ) {
            let spellings = operators.iter().map(|at| Operator::SPELLINGS[*at].0);
            let parts = spellings.zip(&bounds).map(|(op, bound)| format!("k {op} '{bound}'"));
            let Ok(query) = TagQuery::parse(&parts.collect::<Vec<_>>().join(" AND ")) else {
                return Ok(());
            };
            if query.holds(&tags(&[("k", &value)])) {
                let asked = query.driver();
                let above = |(least, is_in): (&str, bool)| value.as_str() > least
                    || (is_in && value == least);
                let below = |(most, is_in): (&str, bool)| value.as_str() < most
                    || (is_in && value == most);
                prop_assert!(asked.least.is_none_or(above) && asked.most.is_none_or(below));
            }
        }
    }
}
