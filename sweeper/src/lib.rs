//! Deletes or moves blobs whose `TimeToLive` has passed, safely, on Azure, Azurite or smalt.
//!
//! A blob says in its metadata when its time is over (`TimeToLive`) and, if it is to be kept
//! elsewhere, where (`DeadBlobContainer`). Any number of workers share the sweep; all that they
//! know of each other is one XML blob, the [state document](state).
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
//! - Pure: [`decide`] (may this blob go?), [`explain`] (why?), [`ttl`], [`destination`],
//!   [`provenance`], [`guard`], [`budget`], [`schedule`], [`plan`], [`cost`], [`summary`], and
//!   [`state`] with its [`ledger`](state::ledger).
//! - Executors: `store` (the document in storage), `claim` (one step on it), `work` (one page),
//!   `mover` (one blob; `source` signs what it reads), `cycle` (the loop), behind [`Sweeper`];
//!   beside them `foresee` (plans), [`inspect`] (look at one blob), [`mark`], [`undo`] and
//!   [`upkeep`] for the operator.
//!
//! # Invariants
//! - Time is the service's `Date`, carried on by tokio's clock: paused time moves a worker (DS15).
//! - A page is claimed durably before the first blob of it is touched (DS8).
//! - Every delete names the version it was decided about; so does every copy (DS6).
//! - A blob that is to be moved is deleted only after its copy was verified (DS4).
//! - Nothing is ever written to a source (DS2).
//! - The lease on the state document saves work; safety needs only ETags (DS11).

mod accounts;
pub mod budget;
mod calls;
mod carried;
mod claim;
pub mod config;
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
pub use sweeper::{Finished, Sweeper};
pub use target::Target;
