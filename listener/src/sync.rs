//! The lock that [`Signal`](crate::signal::Signal) uses.
//!
//! With the feature `shuttle` it is the lock of the model checker of that name, which runs the same
//! code with many thread schedules. Such a listener is not usable; only tests turn the feature on.

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::Mutex;
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::Mutex;
