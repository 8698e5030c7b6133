//! The model itself, with the texts of what its numbers stand for.

use smalt_model::Model;
use smalt_model::vocabulary::Operation;

use super::hash_of;
use crate::bursts::linear::Spec;
use crate::histories::check::check;
use crate::histories::names::Names;
use crate::histories::run::Answered;

/// State of the model, with what its numbers stand for.
#[derive(Clone, Debug, Hash)]
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
            check(&expected, seen, &mut after.names)?;
        }
        Ok(after)
    }

    fn fingerprint(&self) -> u64 {
        hash_of(self)
    }
}
