//! What one blob, one container, one queue, one partition of entities does: compact specifications
//! for the search of [`linear`](super::linear).
//!
//! They say the same as the model does and are no part of it: a small state, values that the
//! service makes up bound when they are seen first, time standing still. That they say the same is
//! tested against the model on sequential histories, answer by answer.
//!
//! # Layout
//! - [`output`]: what a client sees of an answer; [`pool`]: numbers for what the service made up.
//! - [`value`]: a made-up value, seen or not yet.
//! - [`blob`], [`container`], [`lease`], [`queue`], [`entity`]: one partition each.
//! - [`whole`]: the model itself, for bursts over all kinds.

pub mod blob;
pub mod container;
pub mod entity;
pub mod lease;
pub mod output;
pub mod pool;
pub mod queue;
pub mod value;
pub mod whole;

#[cfg(test)]
mod agreement;

use smalt_protocol::ErrorCode;

use output::Output;

/// Why an operation is refused: the code and, where it is not the code's own, the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub ErrorCode, pub Option<u16>);

impl From<ErrorCode> for Refused {
    fn from(code: ErrorCode) -> Self {
        Refused(code, None)
    }
}

/// Compares status and code; nobody is there to compare when the answer was lost.
///
/// # Errors
/// When they differ.
pub fn same_outcome(told: Result<u16, Refused>, seen: Option<&Output>) -> Result<(), String> {
    let Some(seen) = seen else { return Ok(()) };
    let (status, code) = match told {
        Ok(status) => (status, None),
        Err(Refused(code, status)) => (status.unwrap_or(code.status()), Some(code.as_str())),
    };
    if (seen.status, seen.code.as_deref()) == (status, code) {
        return Ok(());
    }
    let (got, wanted) = (seen.code.as_deref().unwrap_or("-"), code.unwrap_or("-"));
    Err(format!(
        "{} {got} in place of {status} {wanted}",
        seen.status
    ))
}

/// What an operation answers when it is done: at least a status.
pub trait Done {
    /// The status.
    fn status(&self) -> u16;
}

/// Takes a step: the state after it, if the answer that was seen, or any, fits to it.
///
/// # Errors
/// How the answer differs.
fn step<S: Clone, T: Done>(
    before: &S,
    seen: Option<&Output>,
    act: impl FnOnce(&mut S) -> Result<T, Refused>,
    compare: impl FnOnce(&mut S, T, &Output) -> Result<(), String>,
) -> Result<S, String> {
    let mut after = before.clone();
    let told = match act(&mut after) {
        Err(refused) => return same_outcome(Err(refused), seen).map(|()| before.clone()),
        Ok(told) => told,
    };
    same_outcome(Ok(told.status()), seen)?;
    if let Some(seen) = seen {
        compare(&mut after, told, seen)?;
    }
    Ok(after)
}

/// Compares a part of an answer.
///
/// # Errors
/// When it differs.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, wanted: &T, got: &T) -> Result<(), String> {
    if wanted == got {
        return Ok(());
    }
    Err(format!("{what}: {got:?} in place of {wanted:?}"))
}

/// A hash that is the same in every run on one kind of machine.
pub fn hash_of(value: &impl std::hash::Hash) -> u64 {
    ahash::RandomState::with_seeds(1, 2, 3, 4).hash_one(value)
}
