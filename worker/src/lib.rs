//! What the sweeper and the listener share beside their storage client.
//!
//! - [`settings`], [`secret`], [`span`], [`budget`]: values of an operator, each read in one
//!   way by both workers.
//! - [`access`]: a storage account as settings describe it, opened.
//! - [`process`]: environment, files, seed and clock of this process.
//! - [`face`], [`metrics`]: the HTTP addresses of a running worker, and its metrics.
//! - [`signals`], [`log`], [`progress`], [`exit`]: how a process stops, speaks and ends.
//!
//! # Libraries that were considered
//!
//! - `axum` for [`face`]: it routes, which is fifteen lines here; its server bounds neither
//!   connections nor the time of a head, so the accept loop would stay.
//! - `prometheus-client` for [`metrics`]: it writes OpenMetrics, which renames every counter to
//!   `..._total`; dashboards know the names as they are.
//! - `humantime`, `jiff` for [`span`]: both read months, years, fractions and signs, which must not
//!   decide when a blob is deleted; refusing that would need a second parse of what they read.
//! - `figment` for settings: it ends at the first error, where `validate` lists all of them, cannot
//!   merge queues by name, and brings a second reader of TOML.
//! - `globset` for the sweeper's patterns: `[`, `{` and `\` mean something in it, so existing
//!   patterns that protect blobs would change their meaning.

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
