//! Plans a sweep: lists every container, decides about every blob as a sweep would, and optionally
//! checks for obstacles that a sweep would meet later. Writes nothing.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use smalt_sleeve::port::{BlobId, BlobItem, DeleteSnapshots, ListBlobs};

use crate::accounts::Place;
use crate::config::Collision;
use crate::decide::{self, Decision, Scene};
use crate::destination::SweptPlace;
use crate::error::SweepError;
use crate::inspect;
use crate::listing;
use crate::outcome::Outcome;
use crate::plan::{Foreseen, Plan, Prices};
use crate::rule::asks_for_tags;
use crate::scope;
use crate::shared::{Core, Stop};
use crate::state::{Container, Status};
use crate::sweeper::Sweeper;

impl Sweeper {
    /// Returns what a sweep would do now. Writes nothing and takes no lease. Calls `progress` after
    /// every page.
    ///
    /// # Errors
    /// If the state document cannot be read, or lists other containers than the configuration.
    pub async fn plan(
        &self,
        prices: Prices,
        rows_max: usize,
        progress: impl Fn(&Plan) + Send,
    ) -> Result<Plan, SweepError> {
        self.foresee(prices, rows_max, false, progress).await
    }

    /// Plans as [`Sweeper::plan`] does, and also checks each blob to remove for snapshots, if
    /// policy refuses them (one listing each), and each move for another blob at its destination
    /// (one HEAD each), including blobs that this plan moves there.
    ///
    /// # Errors
    /// As [`Sweeper::plan`].
    pub async fn plan_deep(
        &self,
        prices: Prices,
        rows_max: usize,
        progress: impl Fn(&Plan) + Send,
    ) -> Result<Plan, SweepError> {
        self.foresee(prices, rows_max, true, progress).await
    }

    async fn foresee(
        &self,
        prices: Prices,
        rows_max: usize,
        deep: bool,
        progress: impl Fn(&Plan) + Send,
    ) -> Result<Plan, SweepError> {
        let core = self.core(Stop::default());
        let document = self.document(&core).await?;
        scope::agree(&core.config, &core.accounts, &document)?;
        let swept = core.accounts.swept(&document);
        let elements = document.containers.iter();
        let elements: Vec<_> = elements.filter(|c| c.status != Status::Off).collect();
        let mut plan = Plan {
            deep,
            containers_all: elements.len() as u64,
            ..Plan::default()
        };
        let mut taken = Taken::default();
        for element in elements {
            let sheet = Sheet {
                element,
                swept: &swept,
                rows_max,
            };
            let planned = plan_container(&core, &sheet, &mut taken, &mut plan, &progress);
            if let Err(error) = planned.await {
                let entry = plan.containers.entry(element.name.clone());
                entry.or_default().error = Some(error);
            }
            plan.containers_done += 1;
            progress(&plan);
        }
        plan.finish(prices);
        Ok(plan)
    }
}

/// A container to plan, with the swept places and the row limit.
struct Sheet<'a> {
    element: &'a Container,
    swept: &'a [SweptPlace],
    rows_max: usize,
}

async fn plan_container(
    core: &Core,
    sheet: &Sheet<'_>,
    taken: &mut Taken,
    plan: &mut Plan,
    progress: &(impl Fn(&Plan) + Send),
) -> Result<(), String> {
    let element = sheet.element;
    let place = core.accounts.place(element)?;
    let shown = |error: &dyn std::fmt::Display| smalt_sleeve::redact(&error.to_string());
    let mut marker = None;
    loop {
        let list = ListBlobs {
            prefix: element.prefix.clone(),
            marker,
            page_size: core.config.page_size,
            tags: asks_for_tags(&core.policy().rules),
        };
        let account = core.paced(place.storage.as_ref(), "plan");
        let listed = account.list_blobs(&place.container, &list).await;
        let page = listed.map_err(|error| shown(&error))?;
        let decided: Vec<Decision> = page
            .blobs
            .iter()
            .map(|item| {
                let scene = listing::scene(core, &place, sheet.swept);
                let (name, seen) = (&item.name, &item.properties);
                decide::decide(&core.config.policy, &scene, name, seen, page.server_time)
            })
            .collect();
        let looks = looks(core, &place, &page.blobs, &decided, plan.deep).await;
        let mut looks = looks.map_err(|error| shown(&error))?;
        for ((item, decision), look) in page.blobs.iter().zip(&decided).zip(&mut looks) {
            if taken.meets(core, &place, item, decision, look) {
                look.keeps = Some(Outcome::Collision);
            }
        }
        plan.page(&element.name);
        plan.decided_at = page.server_time.iso_s();
        let scene = listing::scene(core, &place, sheet.swept);
        for ((item, decision), look) in page.blobs.iter().zip(&decided).zip(&looks) {
            plan.looks += look.calls;
            let detail = match decision {
                Decision::Keep(outcome) => detail(core, &scene, item, *outcome),
                _ => None,
            };
            let seen = Foreseen {
                decision,
                keeps: look.keeps,
                detail,
            };
            plan.blob(&element.name, &place.container, item, seen);
        }
        // A sweep counts intended removals, whatever their outcome.
        let due = decided.iter().filter(|decision| decision.removes()).count() as u64;
        let seen = page.blobs.len() as u64;
        plan.guard(&core.config.guard, &element.name, seen, due);
        plan.truncate(sheet.rows_max);
        progress(plan);
        marker = page.next_marker;
        if marker.is_none() {
            return Ok(());
        }
    }
}

/// Returns the detail that helps to fix a blob that stays.
fn detail(core: &Core, scene: &Scene<'_>, item: &BlobItem, outcome: Outcome) -> Option<String> {
    let (policy, seen) = (&core.config.policy, &item.properties);
    let detail = decide::detail(policy, scene, &item.name, seen, outcome)?;
    Some(smalt_sleeve::redact(&detail))
}

/// The result of a deep check of one blob.
#[derive(Clone, Copy, Default)]
struct DeepCheck {
    /// The outcome, if a sweep could not remove the blob.
    keeps: Option<Outcome>,
    /// Whether a sweep would make the copy, even if the source then stays.
    copies: bool,
    /// Charged calls of this check.
    calls: u64,
}

/// Maximum number of remembered destinations, some tens of megabytes.
const TAKEN_MAX: usize = 1_000_000;

/// Hashes of the destinations of the plan's own moves, with the hash of the blob that moves there.
/// Two destinations collide once in millions of plans of that size.
#[derive(Default)]
struct Taken(HashMap<u64, u64>);

impl Taken {
    /// Returns whether a move collides with another move of this plan, and policy then keeps the
    /// blob. The plan assumes that the first one listed arrives first. A sweep processes many at
    /// once and may use another order, with the same number of collisions.
    fn meets(
        &mut self,
        core: &Core,
        place: &Place,
        item: &BlobItem,
        decision: &Decision,
        look: &DeepCheck,
    ) -> bool {
        let Decision::Move { destination, .. } = decision else {
            return false;
        };
        if !look.copies || core.config.dead.on_collision != Collision::Fail {
            return false;
        }
        let to = number(destination);
        // Elements may overlap; a blob does not collide with itself.
        let from = number(&(place.storage.account(), &place.container, &item.name));
        match self.0.get(&to) {
            Some(other) => *other != from,
            None => {
                if self.0.len() < TAKEN_MAX {
                    self.0.insert(to, from);
                }
                false
            }
        }
    }
}

fn number(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Checks each blob of a page in order, but only for a deep plan.
async fn looks(
    core: &Core,
    place: &Place,
    items: &[BlobItem],
    decided: &[Decision],
    deep: bool,
) -> Result<Vec<DeepCheck>, SweepError> {
    if !deep {
        return Ok(vec![DeepCheck::default(); items.len()]);
    }
    let all = items.iter().zip(decided);
    stream::iter(all.map(|(item, decision)| look(core, place, item, decision)))
        .buffered(core.config.parallelism)
        .try_collect()
        .await
}

/// Checks in the order of a sweep: first the destination of a move, then the delete.
async fn look(
    core: &Core,
    place: &Place,
    item: &BlobItem,
    decision: &Decision,
) -> Result<DeepCheck, SweepError> {
    let mut look = DeepCheck::default();
    if !decision.removes() {
        return Ok(look);
    }
    let blob = BlobId::new(&place.container, &item.name);
    if let Decision::Move { destination, .. } = decision {
        look.calls += 1;
        let seen = &item.properties;
        let check = inspect::standing(core, place, &blob, seen, destination).await?;
        look.keeps = check.keeps;
        look.copies = check.keeps.is_none();
    }
    if look.keeps.is_none() && core.config.snapshots == DeleteSnapshots::Refuse {
        look.calls += 1;
        let check = inspect::snapshots(core, place.storage.as_ref(), &blob).await?;
        look.keeps = check.keeps;
    }
    Ok(look)
}
