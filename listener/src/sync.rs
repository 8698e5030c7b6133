//! The lock below a [`Signal`](crate::signal::Signal).
//!
//! With the feature `shuttle` it is that of the model checker of that name, which runs the same
//! code in many orders of its threads. That listener cannot serve: only tests turn the feature on.

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::Mutex;
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::Mutex;
