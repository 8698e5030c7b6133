//! Whether a filter holds for an entity.

use std::cmp::Ordering;

use crate::table::entity::Fields;
use crate::table::filter::condition::{Comparison, Condition, Operand};
use crate::table::value::{Value, ValueRef};

/// The depth of this recursion is that of the filter, which was bounded when it was read.
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

/// A literal that is an `Edm.Int32`, as the larger type of number that it is compared with.
///
/// "Querying tables and entities" asks for a constant of the property's type. Reported of
/// production by the testers of Storage Explorer, issues 5346 and 6866: a small whole number finds
/// an `Edm.Int64` and an `Edm.Double` too, while `7L` finds neither an `Edm.Int32` nor an
/// `Edm.Double`. Azurite does likewise.
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
    /// Whether it holds for two values of this order; nothing but `ne` holds for a NaN.
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
