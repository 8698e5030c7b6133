//! The syntax tree of a filter.

use crate::table::value::Value;

/// A condition that is true or false for an entity.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// All terms, joined by `and`.
    All(Vec<Condition>),
    /// Any term, joined by `or`.
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Compare(Operand, Comparison, Operand),
    /// A boolean property or literal on its own.
    Holds(Operand),
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Property(String),
    Literal(Value),
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}
