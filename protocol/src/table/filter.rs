//! `$filter`: which entities a query is answered with.
//!
//! `PartitionKey eq 'a' and (Age ge 18 or not Active)`: comparisons of a property and a literal,
//! either way round, properties that are true or false, `and`, `or`, `not` and brackets. A literal
//! is `'text'`, `7`, `7L`, `7.5`, `true` in any case, `datetime'..'`, `guid'..'`, `X'..'`,
//! `binary'..'` or
//! `null`. Source: *Querying tables and entities*; recordings for the refusal of what cannot be
//! read.
//!
//! A text is read into a tree once, its depth and size bounded; the tree is asked about entities
//! and about the keys that they can have.

mod condition;
mod evaluate;
mod lex;
mod parse;
mod ranges;

use crate::error::{ErrorCode, StorageError};
use crate::table::entity::Fields;

use condition::Condition;
pub use ranges::{Interval, KeyRange};

/// Bytes of a filter: ours, more than a request line can hold.
const FILTER_BYTES_MAX: usize = 64 * 1024;

/// A filter that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    root: Condition,
    comparisons: usize,
}

impl Filter {
    /// Reads a filter, decoded. One of white space alone accepts everything.
    ///
    /// # Errors
    /// 400 `InvalidInput` for what is not in the language and for what is nested more than 100 deep
    /// or makes more than 1,000 comparisons, with the position where reading ended.
    pub fn parse(text: &str) -> Result<Self, StorageError> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(ErrorCode::InvalidInput.into());
        }
        let (root, comparisons) = parse::parse(text)?;
        Ok(Filter { root, comparisons })
    }

    /// How many comparisons it makes at most for one entity.
    pub const fn comparisons(&self) -> usize {
        self.comparisons
    }

    /// Whether an entity, or a table, belongs to the answer. A comparison with a property that is
    /// missing or of another type than the literal does not hold, whichever it is; a literal
    /// that is an `Edm.Int32` is compared with larger numbers too.
    pub fn matches(&self, fields: &impl Fields) -> bool {
        evaluate::holds(&self.root, fields)
    }

    /// Where entities that match can lie: ranges in the order of keys that do not overlap. Every
    /// entity that matches is in one of them; not all that are in them match. None at all when
    /// nothing can match.
    pub fn key_ranges(&self) -> Vec<KeyRange> {
        ranges::of(&self.root)
    }
}

#[cfg(test)]
#[path = "filter/tests.rs"]
mod tests;
