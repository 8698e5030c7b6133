//! The sweeper of the payloads' container, in the same world as the listeners.
//!
//! No fault hits it, because its own scenario has those; here it shows that it leaves the payload
//! of every live message alone, and removes every other one.

use std::time::Duration;

use smalt_sleeve::port::{BlobId, CallContext};
use smalt_sweeper::schedule::Schedule;
use smalt_sweeper::{Accounts, Sweeper, SweeperConfig, SweptContainer};
use tokio::sync::oneshot;

use super::plan::{ListenPlan, TTL_MAX_S};
use super::shape::{MARGIN, PAYLOADS};
use crate::scenario::actor::Actor;
use crate::scenario::world::{Which, World};

/// Name of the sweeper in the history.
pub(super) const NAME: &str = "sweeper";
/// Time between two sweeps.
const EVERY: Duration = Duration::from_secs(300);
/// Container of the state document.
const STATE: &str = "state";

/// Returns the time after the last message in which every payload that expires is due and was
/// swept.
pub(super) fn last() -> Duration {
    MARGIN + Duration::from_secs(TTL_MAX_S.into()) + 2 * EVERY
}

/// Sweeps until it is told to stop, if the plan has a sweeper.
///
/// # Errors
/// A description, when the sweeper does not start or gives up.
pub(super) async fn sweep(
    world: &World,
    plan: &ListenPlan,
    told: oneshot::Receiver<()>,
) -> Result<(), String> {
    if !plan.shape.swept {
        return Ok(());
    }
    let storage = world.storage(Which::Main, &Actor::bystander(NAME), plan.seed)?;
    let cx = CallContext::default();
    let made = storage.create_container(&cx, PAYLOADS).await;
    made.map_err(|error| error.to_string())?;
    let config = SweeperConfig {
        worker_id: Some(NAME.to_owned()),
        state_blob: BlobId::new(STATE, "TimeToLiveBlobs"),
        containers: vec![SweptContainer {
            account: "default".to_owned(),
            container: PAYLOADS.to_owned(),
            prefix: String::new(),
        }],
        schedule: Schedule {
            every: EVERY,
            align: true,
            jitter: Duration::ZERO,
        },
        ..SweeperConfig::default()
    };
    let accounts = Accounts::new().with("default", storage);
    let sweeper = Sweeper::new(config, accounts, plan.seed).map_err(|error| error.to_string())?;
    let finished = sweeper.run_until(async {
        // A sender that is dropped stops it as well.
        let _ = told.await;
    });
    let error = finished.await.error;
    error.map_or(Ok(()), |error| Err(error.to_string()))
}
