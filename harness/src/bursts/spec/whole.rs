//! The model itself, with the texts of what its numbers stand for.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher as _};

use smalt_model::Model;
use smalt_model::vocabulary::Operation;

use crate::bursts::linear::Spec;
use crate::histories::check::check;
use crate::histories::names::Names;
use crate::histories::run::Answered;

/// State of the model, with what its numbers stand for.
#[derive(Clone, Debug)]
pub struct Whole {
    /// Model.
    pub model: Model,
    /// Texts.
    pub names: Names,
}

impl Spec for Whole {
    type Output = Answered;

    fn step(&self, operation: &Operation, seen: Option<&Answered>) -> Result<Self, String> {
        let mut after = self.clone();
        let expected = after.model.step(operation);
        if let Some(seen) = seen {
            check(&expected, &seen.answer, &seen.entries, &mut after.names)?;
        }
        Ok(after)
    }

    fn fingerprint(&self) -> u64 {
        let mut shown = Shown(DefaultHasher::new());
        // Hashing does not fail.
        let _ = write!(shown, "{self:?}");
        shown.0.finish()
    }
}

/// What is written to it is hashed, and kept nowhere.
struct Shown(DefaultHasher);

impl std::fmt::Write for Shown {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
