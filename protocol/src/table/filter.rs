//! `$filter`: selects the entities of a query.
//!
//! `PartitionKey eq 'a' and (Age ge 18 or not Active)`: comparisons of a property and a literal in
//! either order, boolean properties, `and`, `or`, `not` and parentheses. A literal is `'text'`,
//! `7`, `7L`, `7.5`, `true` in any case, `datetime'..'`, `guid'..'`, `X'..'`, `binary'..'` or
//! `null`. Source: *Querying tables and entities*; recordings for the errors of malformed filters.
//!
//! A filter is parsed once into a tree of bounded depth and size. The tree is evaluated against
//! entities and yields the key ranges that they can have.

mod condition;
mod evaluate;
mod lex;
mod parse;
mod ranges;

use crate::error::{ErrorCode, StorageError};
use crate::table::entity::Fields;

use condition::Condition;
pub use ranges::{Interval, KeyRange};

/// Maximum bytes of a filter: smalt's own limit, more than a request line can hold.
const FILTER_BYTES_MAX: usize = 64 * 1024;

/// A parsed filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    root: Condition,
    comparisons: usize,
}

impl Filter {
    /// Parses a filter, decoded. A filter of only white space matches everything.
    ///
    /// # Errors
    /// 400 `InvalidInput` with the position of the error for a syntax error, for nesting deeper
    /// than 100 and for more than 1,000 comparisons.
    pub fn parse(text: &str) -> Result<Self, StorageError> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(ErrorCode::InvalidInput.into());
        }
        let (root, comparisons) = parse::parse(text)?;
        Ok(Filter { root, comparisons })
    }

    /// Returns the maximum number of comparisons for one entity.
    pub const fn comparisons(&self) -> usize {
        self.comparisons
    }

    /// Returns whether an entity, or a table, matches. A comparison with a property that is missing
    /// or of another type than the literal is false for every operator; an `Edm.Int32` literal also
    /// compares with larger numbers.
    pub fn matches(&self, fields: &impl Fields) -> bool {
        evaluate::holds(&self.root, fields)
    }

    /// Returns the key ranges that can contain matches, in the order of keys and without overlap.
    /// Every match is in one of them, but not every entity in them matches. Empty if nothing can
    /// match.
    pub fn key_ranges(&self) -> Vec<KeyRange> {
        ranges::of(&self.root)
    }
}

#[cfg(test)]
#[path = "filter/tests.rs"]
mod tests;
