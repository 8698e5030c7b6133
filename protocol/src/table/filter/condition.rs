//! A filter as a tree.

use crate::table::value::Value;

/// What holds for an entity or does not.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// `and` of several.
    All(Vec<Condition>),
    /// `or` of several.
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Compare(Operand, Comparison, Operand),
    /// A property that is `true`, or the literal.
    Holds(Operand),
}

/// What stands at a side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Property(String),
    Literal(Value),
    Null,
}

/// An operator of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}
