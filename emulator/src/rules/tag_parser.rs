//! Parser for expressions over index tags: the predicate of `x-ms-if-tags`, and the `where` of Find
//! Blobs by Tags.
//!
//! Sources: "Manage and find Azure Blob data with blob index tags", "Find Blobs by Tags". `"key" op
//! 'value'` with `=`, `>`, `>=`, `<`, `<=`; quotes around a simple key are optional, as in
//! recordings. AND joins comparisons, parentheses group them. A condition also supports `<>`, and
//! OR, which binds less tightly than AND; a query also supports `@container`.

use smalt_protocol::limits::{TAG_KEY_CHARS, TAG_VALUE_CHARS};

use super::tag_condition::{Operator, TagExpression};
use super::tags;

/// Maximum depth of parentheses. The limit is the emulator's own, more than enough for the ten tags
/// of a blob.
const DEPTH_MAX: usize = 16;
/// The parameter of a query that names the container.
pub const CONTAINER: &str = "@container";
/// Words that need quotes when used as keys. Users of the service found that the parts of a date
/// are reserved.
const RESERVED: [&str; 6] = ["and", "or", "not", "year", "month", "day"];

/// Which of the two grammars to parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The grammar of `x-ms-if-tags`.
    Condition,
    /// The grammar of `where`.
    Query,
}

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The character at which parsing stopped, counted from 1.
    pub position: usize,
    /// What is wrong there, in the service's words.
    pub problem: String,
}

/// Parses an expression.
///
/// # Errors
/// The position and cause of the first syntax error.
pub fn parse(text: &str, dialect: Dialect) -> Result<TagExpression, Unexpected> {
    let mut parser = Parser {
        text,
        at: 0,
        dialect,
    };
    let expression = parser.any(0)?;
    parser.skip_spaces();
    if parser.rest().is_empty() {
        Ok(expression)
    } else {
        Err(parser.unexpected())
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Byte offset, always at a character boundary.
    at: usize,
    dialect: Dialect,
}

impl<'a> Parser<'a> {
    fn any(&mut self, depth: usize) -> Result<TagExpression, Unexpected> {
        let mut parts = vec![self.all(depth)?];
        while self.dialect == Dialect::Condition && self.word("or") {
            parts.push(self.all(depth)?);
        }
        Ok(one_or(parts, TagExpression::Any))
    }

    fn all(&mut self, depth: usize) -> Result<TagExpression, Unexpected> {
        let mut parts = vec![self.comparison(depth)?];
        while self.word("and") {
            parts.push(self.comparison(depth)?);
        }
        Ok(one_or(parts, TagExpression::All))
    }

    fn comparison(&mut self, depth: usize) -> Result<TagExpression, Unexpected> {
        self.skip_spaces();
        if depth < DEPTH_MAX && self.symbol("(") {
            let inside = self.any(depth + 1)?;
            return self.expect(")").map(|()| inside);
        }
        let key = self.key()?;
        let operator = self.operator(&key)?;
        let value = self.quoted('\'')?;
        self.check(&key, &value)?;
        Ok(TagExpression::Compare {
            key,
            operator,
            value,
        })
    }

    /// Checks that a blob could have the key and value. A condition may be longer than any tag; it
    /// then never matches.
    fn check(&self, key: &str, value: &str) -> Result<(), Unexpected> {
        if key == CONTAINER {
            return Ok(());
        }
        let mut letters = key.chars().chain(value.chars());
        let problem = if let Some(letter) = letters.find(|letter| !tags::is_permitted(*letter)) {
            format!("'{letter}' not permitted in tag name or value")
        } else if self.dialect == Dialect::Condition {
            return Ok(());
        } else if !TAG_KEY_CHARS.contains(&key.len()) {
            "tag must be between 1 and 128 characters in length".to_owned()
        } else if !TAG_VALUE_CHARS.contains(&value.len()) {
            "tag value must be between 0 and 256 characters in length".to_owned()
        } else {
            return Ok(());
        };
        Err(self.problem(problem))
    }

    fn operator(&mut self, key: &str) -> Result<Operator, Unexpected> {
        self.skip_spaces();
        let rest = self.rest();
        let found = Operator::SPELLINGS
            .into_iter()
            .find(|(spelling, _)| rest.starts_with(spelling));
        let is_known = |operator| match self.dialect {
            Dialect::Condition => true,
            Dialect::Query if key == CONTAINER => operator == Operator::Equal,
            Dialect::Query => operator != Operator::NotEqual,
        };
        match found {
            Some((spelling, operator)) if is_known(operator) => {
                self.at += spelling.len();
                Ok(operator)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn key(&mut self) -> Result<String, Unexpected> {
        if self.rest().starts_with('"') {
            return self.quoted('"');
        }
        if self.dialect == Dialect::Query && self.parameter() == CONTAINER {
            self.at += CONTAINER.len();
            return Ok(CONTAINER.to_owned());
        }
        if self.dialect == Dialect::Query && self.rest().starts_with('@') {
            return Err(self.problem(format!("unsupported parameter '{}'", self.parameter())));
        }
        let name = self.name();
        let is_reserved = RESERVED.iter().any(|word| name.eq_ignore_ascii_case(word));
        if name.is_empty() || is_reserved {
            return Err(self.unexpected());
        }
        self.at += name.len();
        Ok(name.to_owned())
    }

    fn quoted(&mut self, quote: char) -> Result<String, Unexpected> {
        self.skip_spaces();
        let rest = self.rest();
        let inside = rest
            .strip_prefix(quote)
            .and_then(|text| text.split_once(quote));
        let Some((text, _)) = inside else {
            return Err(self.unexpected());
        };
        self.at += text.len() + 2;
        Ok(text.to_owned())
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Unexpected> {
        self.skip_spaces();
        if self.symbol(symbol) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let found = self.rest().starts_with(symbol);
        if found {
            self.at += symbol.len();
        }
        found
    }

    /// Consumes a keyword, unless it is only the beginning of a longer word.
    fn word(&mut self, word: &str) -> bool {
        self.skip_spaces();
        let found = self.name().eq_ignore_ascii_case(word);
        if found {
            self.at += word.len();
        }
        found
    }

    /// Returns the letters, digits and underscores that come next.
    fn name(&self) -> &'a str {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    /// Returns the letters, digits, underscores and `@` that come next.
    fn parameter(&self) -> &'a str {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || "@_".contains(c);
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Reports the next token: a name, an operator, or else a single character.
    fn unexpected(&self) -> Unexpected {
        let (rest, name) = (self.rest(), self.name());
        let spelled = Operator::SPELLINGS
            .into_iter()
            .map(|(spelling, _)| spelling)
            .find(|spelling| rest.starts_with(spelling));
        let found = match (name, spelled) {
            ("", Some(operator)) => operator.to_owned(),
            ("", None) => rest.chars().take(1).collect(),
            (name, _) => name.to_owned(),
        };
        self.problem(format!("unexpected '{found}'"))
    }

    fn problem(&self, problem: String) -> Unexpected {
        let before = self.text.get(..self.at).unwrap_or_default();
        Unexpected {
            position: before.chars().count() + 1,
            problem,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_error_has_its_position() {
        for (text, position, found) in [
            ("", 1, ""),
            ("a", 2, ""),
            ("a = ", 5, ""),
            ("a = b", 5, "b"),
            ("a = 'b", 5, "'"),
            ("a <> 'b'", 3, "<>"),
            ("a == 'b'", 4, "="),
            ("ü = 'b'", 1, "ü"),
            ("a = 'u' OR b = 'c'", 9, "OR"),
            ("(a = 'b' or b = 'c')", 10, "or"),
            ("a = 'b' AND", 12, ""),
            ("a = 'b' and Year = '2'", 13, "Year"),
            ("a = 'b' b = 'c'", 9, "b"),
            ("@container > 'b'", 12, ">"),
            ("(a = 'b'", 9, ""),
            ("a b = 'c'", 3, "b"),
        ] {
            let problem = format!("unexpected '{found}'");
            let expected = Unexpected { position, problem };
            assert_eq!(parse(text, Dialect::Query), Err(expected), "{text}");
        }
    }

    #[test]
    fn keys_and_values_must_be_valid_tags() {
        let (key, value) = ("k".repeat(129), "v".repeat(257));
        for (text, in_query, in_condition) in [
            (format!("{key} = 'v'"), false, true),
            (format!("k = '{value}'"), false, true),
            ("\"\" = 'v'".to_owned(), false, true),
            ("k = 'v+-.:=_/ v'".to_owned(), true, true),
            ("k = 'v@'".to_owned(), false, false),
            ("\"k*\" = 'v'".to_owned(), false, false),
            ("@containers = 'v'".to_owned(), false, false),
        ] {
            assert_eq!(parse(&text, Dialect::Query).is_ok(), in_query, "{text}");
            assert_eq!(
                parse(&text, Dialect::Condition).is_ok(),
                in_condition,
                "{text}"
            );
        }
    }

    /// A condition supports six operators, a query all but `<>`, a container only `=`.
    #[test]
    fn operators_depend_on_the_dialect() {
        for (operator, in_condition, in_query, of_container) in [
            ("=", true, true, true),
            ("<>", true, false, false),
            (">", true, true, false),
            (">=", true, true, false),
            ("<", true, true, false),
            ("<=", true, true, false),
        ] {
            let is_read = |key, dialect| parse(&format!("{key} {operator} 'v'"), dialect).is_ok();
            let found = (
                is_read("k", Dialect::Condition),
                is_read("k", Dialect::Query),
                is_read(CONTAINER, Dialect::Query),
            );
            assert_eq!(found, (in_condition, in_query, of_container), "{operator}");
            assert!(!is_read(CONTAINER, Dialect::Condition), "{operator}");
        }
    }

    #[test]
    fn only_a_query_has_parameters() {
        for (dialect, problem) in [
            (Dialect::Query, "unsupported parameter '@containers'"),
            (Dialect::Condition, "unexpected '@'"),
        ] {
            let expected = Unexpected {
                position: 2,
                problem: problem.to_owned(),
            };
            assert_eq!(parse(" @containers = 'v'", dialect), Err(expected));
        }
    }

    /// A single comparison is not wrapped in a list; AND binds more tightly than OR, and redundant
    /// parentheses are dropped.
    #[test]
    fn expression_tree_follows_precedence() {
        let one = |key: &str| TagExpression::Compare {
            key: key.to_owned(),
            operator: Operator::Equal,
            value: "v".to_owned(),
        };
        let all = |keys: &[&str]| TagExpression::All(keys.iter().copied().map(one).collect());
        for (text, expected) in [
            ("a='v'", one("a")),
            ("((a='v'))", one("a")),
            ("a='v' AND b='v' and c='v'", all(&["a", "b", "c"])),
            (
                "a='v' OR b='v' AND (c='v')",
                TagExpression::Any(vec![one("a"), all(&["b", "c"])]),
            ),
        ] {
            assert_eq!(parse(text, Dialect::Condition), Ok(expected), "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        for dialect in [Dialect::Query, Dialect::Condition] {
            let nested = |depth| format!("{}a='b'{}", "(".repeat(depth), ")".repeat(depth));
            assert!(parse(&nested(DEPTH_MAX), dialect).is_ok());
            assert!(parse(&nested(DEPTH_MAX + 1), dialect).is_err());
        }
    }
}
