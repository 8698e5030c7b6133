//! Evaluates a filter for an entity.

use std::cmp::Ordering;

use crate::table::entity::Fields;
use crate::table::filter::condition::{Comparison, Condition, Operand};
use crate::table::value::{Value, ValueRef};

/// Recurses as deep as the filter, whose depth the parser limits.
pub(super) fn holds(condition: &Condition, fields: &impl Fields) -> bool {
    match condition {
        Condition::All(terms) => terms.iter().all(|term| holds(term, fields)),
        Condition::Any(terms) => terms.iter().any(|term| holds(term, fields)),
        Condition::Not(term) => !holds(term, fields),
        Condition::Compare(left, comparison, right) => compare(
            value(left, fields),
            *comparison,
            value(right, fields),
            left,
            right,
        ),
        Condition::Holds(operand) => {
            matches!(value(operand, fields), Some(ValueRef::Boolean(true)))
        }
    }
}

fn value<'a>(operand: &'a Operand, fields: &'a impl Fields) -> Option<ValueRef<'a>> {
    match operand {
        Operand::Property(name) => fields.field(name),
        Operand::Literal(value) => Some(Value::as_ref(value)),
        Operand::Null => None,
    }
}

fn compare(
    one: Option<ValueRef<'_>>,
    comparison: Comparison,
    other: Option<ValueRef<'_>>,
    left: &Operand,
    right: &Operand,
) -> bool {
    if *left == Operand::Null || *right == Operand::Null {
        let are_both_missing = one.is_none() && other.is_none();
        return match comparison {
            Comparison::Equal => are_both_missing,
            Comparison::NotEqual => !are_both_missing,
            _ => false,
        };
    }
    let (Some(one), Some(other)) = (one, other) else {
        return false;
    };
    let (one, other) = (widened(one, left, other), widened(other, right, one));
    if one.edm_type() != other.edm_type() {
        return false;
    }
    comparison.holds(one.compare(other))
}

/// Converts an `Edm.Int32` literal to the larger numeric type that it is compared with.
///
/// "Querying tables and entities" asks for a constant of the property's type. The testers of
/// Storage Explorer report of production (issues 5346 and 6866) that a small whole number also
/// matches an `Edm.Int64` and an `Edm.Double`, while `7L` matches neither an `Edm.Int32` nor an
/// `Edm.Double`. Azurite does the same.
fn widened<'a>(value: ValueRef<'a>, operand: &Operand, with: ValueRef<'_>) -> ValueRef<'a> {
    match (value, operand, with) {
        (ValueRef::Int32(number), Operand::Literal(_), ValueRef::Int64(_)) => {
            ValueRef::Int64(number.into())
        }
        (ValueRef::Int32(number), Operand::Literal(_), ValueRef::Double(_)) => {
            ValueRef::Double(number.into())
        }
        _ => value,
    }
}

impl Comparison {
    /// Returns whether the comparison is true for this order; for a NaN only `ne` is true.
    pub(super) fn holds(self, order: Option<Ordering>) -> bool {
        let Some(order) = order else {
            return self == Comparison::NotEqual;
        };
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
        }
    }
}
