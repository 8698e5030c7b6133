//! The sweeper against a model of the service: each defect of the original design by name, the
//! safety properties over random worlds, crashes at every call.

mod defects;
mod fake;
mod life;
mod moves;
mod properties;
mod support;
