//! Deletes or moves blobs whose `TimeToLive` has passed, safely, on Azure, Azurite or smalt.
//!
//! A blob's metadata name its due time (`TimeToLive`) and, if it is to be moved instead of deleted,
//! its destination (`DeadBlobContainer`). Any number of workers share the sweep; they coordinate
//! only through one XML blob, the [state document](state).
//!
//! ```no_run
//! # async fn example(storage: std::sync::Arc<dyn smalt_sleeve::port::Storage>) {
//! use smalt_sweeper::{Accounts, Sweeper, SweeperConfig, SweptContainer};
//!
//! let config = SweeperConfig {
//!     containers: vec![SweptContainer {
//!         account: "default".into(),
//!         container: "events".into(),
//!         prefix: String::new(),
//!     }],
//!     ..SweeperConfig::default()
//! };
//! let accounts = Accounts::new().with("default", storage);
//! let sweeper = Sweeper::new(config, accounts, 42).unwrap();
//! let finished = sweeper.once().await;
//! println!("{}", serde_json::to_string(&finished.report).unwrap());
//! # }
//! ```
//!
//! # Layout
//! - Pure: [`decide`] (may this blob be removed?), [`explain`] (why?), [`ttl`], [`destination`],
//!   [`provenance`], [`guard`], [`budget`], [`schedule`], [`plan`], [`cost`], [`summary`], and
//!   [`state`] with its [`ledger`](state::ledger).
//! - Executors, behind [`Sweeper`]: `store` (the document in storage), `claim` (one step on it),
//!   `work` (one page), `mover` (one blob), `copying` (its copy; `source` signs the URL to copy
//!   from), `cycle` (loop).
//! - For the operator: `foresee` (plans), [`inspect`] (explains one blob), [`mark`], [`undo`] and
//!   [`upkeep`].
//!
//! # Invariants
//! - Time is the service's `Date`, advanced by tokio's clock: paused time moves a worker (DS15).
//! - A page is claimed durably before any of its blobs is touched (DS8).
//! - Every delete and every copy names the version it was decided about (DS6).
//! - A blob to be moved is deleted only after its copy was verified (DS4).
//! - No source is ever written to (DS2).
//! - The lease on the state document saves work; safety needs only ETags (DS11).

mod accounts;
pub mod budget;
mod calls;
mod carried;
mod claim;
pub mod config;
mod copying;
pub mod cost;
mod cycle;
pub mod decide;
pub mod destination;
mod entropy;
pub mod error;
pub mod explain;
mod foresee;
pub mod glob;
pub mod guard;
pub mod inspect;
mod listing;
pub mod mark;
mod monitor;
mod mover;
pub mod outcome;
mod paced;
pub mod plan;
pub mod provenance;
pub mod report;
mod restore;
pub mod rule;
pub mod schedule;
mod scope;
pub mod settings;
mod shared;
mod source;
pub mod state;
mod store;
pub mod summary;
mod sweeper;
pub mod target;
pub mod ttl;
pub mod undo;
pub mod upkeep;
pub mod uri;
mod verify;
mod work;

pub use accounts::{Accounts, OpenUri};
pub use config::{Collision, DeadConfig, StateBackend, SweeperConfig, SweptContainer, TagPolicy};
pub use error::SweepError;
pub use inspect::Explained;
pub use monitor::{Monitor, Phase, Progress};
pub use outcome::{Class, Outcome};
pub use plan::{Plan, Prices};
pub use report::Report;
pub use shared::WallClock;
pub use smalt_worker::budget::Budget;
pub use sweeper::{Finished, Sweeper};
pub use target::Target;
