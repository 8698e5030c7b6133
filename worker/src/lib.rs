//! Code that the sweeper and the listener share, except for the storage client.
//!
//! - [`settings`], [`secret`], [`span`], [`budget`]: values of the configuration, parsed the same
//!   way by both workers.
//! - [`access`]: opens a storage account from settings.
//! - [`process`]: environment, files, seed and clock of this process.
//! - [`face`], [`metrics`]: HTTP endpoints and metrics of a running worker.
//! - [`signals`], [`log`], [`progress`], [`exit`]: stopping, output and exit codes.
//!
//! # Libraries that were considered
//!
//! - `axum` for [`face`]: it adds routing, which takes fifteen lines here; its server limits
//!   neither connections nor the time for a request head, so the accept loop would remain.
//! - `prometheus-client` for [`metrics`]: it writes OpenMetrics, which renames every counter to
//!   `..._total`; dashboards use the existing names.
//! - `humantime`, `jiff` for [`span`]: both accept months, years, fractions and signs, which must
//!   not decide when a blob is deleted; rejecting those would need a second parser.
//! - `figment` for settings: it stops at the first error, while `validate` lists all of them; it
//!   cannot merge queues by name, and adds a second TOML parser.
//! - `globset` for the sweeper's patterns: `[`, `{` and `\` have a meaning in it, so existing
//!   `protect` patterns would change theirs.

pub mod access;
pub mod budget;
pub mod exit;
pub mod face;
pub mod log;
pub mod metrics;
pub mod process;
pub mod progress;
pub mod secret;
pub mod settings;
pub mod signals;
pub mod span;
