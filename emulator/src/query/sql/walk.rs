//! Visits every expression of a statement.

use super::{Expr, Name, Select, Statement, Step};

impl Statement {
    /// Visits every expression, operands before the expression that contains them.
    pub fn each_expr(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match &mut self.select {
            Select::All | Select::Split(_) => {}
            Select::Columns(columns) => {
                for column in columns {
                    column.value.each(visit);
                }
            }
            Select::Aggregate(aggregate) => {
                if let Some(of) = &mut aggregate.of {
                    of.each(visit);
                }
            }
        }
        if let Some(condition) = &mut self.condition {
            condition.each(visit);
        }
    }

    pub(super) fn each_field(&mut self, visit: &mut dyn FnMut(&mut Name, &mut Vec<Step>)) {
        self.each_expr(&mut |expr| {
            if let Expr::Field(name, steps) = expr {
                visit(name, steps);
            }
        });
    }
}

impl Expr {
    fn each(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            Expr::Literal(_) | Expr::Field(..) | Expr::Ordinal(_) => {}
            Expr::And(all) | Expr::Or(all) | Expr::Call(_, all) => each(all, visit),
            Expr::Not(one)
            | Expr::Negate(one)
            | Expr::IsNull(one)
            | Expr::IsMissing(one)
            | Expr::Cast(one, _) => one.each(visit),
            Expr::Arithmetic(first, rest) => {
                first.each(visit);
                for (_, operand) in rest {
                    operand.each(visit);
                }
            }
            Expr::Compare(_, left, right) => {
                left.each(visit);
                right.each(visit);
            }
            Expr::Like(value, pattern, escape) => {
                value.each(visit);
                pattern.each(visit);
                if let Some(escape) = escape {
                    escape.each(visit);
                }
            }
            Expr::Between(value, least, greatest) => {
                value.each(visit);
                least.each(visit);
                greatest.each(visit);
            }
            Expr::In(value, list) => {
                value.each(visit);
                each(list, visit);
            }
            Expr::Case(compared, arms, otherwise) => {
                for part in [compared, otherwise].into_iter().flatten() {
                    part.each(visit);
                }
                for (condition, result) in arms {
                    condition.each(visit);
                    result.each(visit);
                }
            }
        }
        visit(self);
    }
}

fn each(all: &mut [Expr], visit: &mut dyn FnMut(&mut Expr)) {
    for one in all {
        one.each(visit);
    }
}
