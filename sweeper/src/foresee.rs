//! Planning in storage: every container listed, every blob decided about as a sweep would, and on
//! demand looked at for what a sweep would run into. Writes nothing.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use smalt_sleeve::port::{BlobId, BlobItem, DeleteSnapshots, ListBlobs};

use crate::accounts::Place;
use crate::decide::{self, Decision};
use crate::destination::SweptPlace;
use crate::error::SweepError;
use crate::inspect;
use crate::listing;
use crate::outcome::Outcome;
use crate::plan::{Plan, Prices};
use crate::rule::asks_for_tags;
use crate::scope;
use crate::shared::{Core, Stop};
use crate::state::{Container, Status};
use crate::sweeper::Sweeper;

impl Sweeper {
    /// What a sweep would do now. Writes nothing, takes no lease. `progress` hears of every page.
    ///
    /// # Errors
    /// When the state document cannot be read, or sweeps others than the configured containers.
    pub async fn plan(
        &self,
        prices: Prices,
        rows_max: usize,
        progress: impl Fn(&Plan) + Send,
    ) -> Result<Plan, SweepError> {
        self.foresee(prices, rows_max, false, progress).await
    }

    /// As [`Sweeper::plan`], and looks at each blob that would go for what shows only at its turn:
    /// its snapshots, where they are refused (a listing for each), and another blob at its
    /// destination (a HEAD for each move).
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
        for element in elements {
            let sheet = Sheet {
                element,
                swept: &swept,
                rows_max,
            };
            if let Err(error) = plan_container(&core, &sheet, &mut plan, &progress).await {
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

/// What is planned, and how much of it is written down.
struct Sheet<'a> {
    element: &'a Container,
    swept: &'a [SweptPlace],
    rows_max: usize,
}

async fn plan_container(
    core: &Core,
    sheet: &Sheet<'_>,
    plan: &mut Plan,
    progress: &(impl Fn(&Plan) + Send),
) -> Result<(), String> {
    let element = sheet.element;
    let place = core.accounts.place(element)?;
    let shown = |error: &dyn std::fmt::Display| crate::uri::redact(&error.to_string());
    let mut marker = None;
    loop {
        let list = ListBlobs {
            prefix: element.prefix.clone(),
            marker,
            page_size: core.config.page_size,
            tags: asks_for_tags(&core.policy().rules),
        };
        let cx = core.context("plan");
        let call = || place.storage.list_blobs(&cx, &place.container, &list);
        let listed = core.calls.repeated(&core.entropy, "list_blobs", call).await;
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
        let looks = looks.map_err(|error| shown(&error))?;
        plan.page(&element.name);
        plan.decided_at = page.server_time.iso_s();
        for ((item, decision), look) in page.blobs.iter().zip(&decided).zip(&looks) {
            plan.looks += look.calls;
            plan.blob(&element.name, &place.container, item, decision, look.keeps);
        }
        // A sweep counts what it means to remove, whatever comes of it.
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

/// What was seen of a blob beside its listing.
#[derive(Clone, Copy, Default)]
struct Look {
    /// What it ends as, when a sweep would not get it away.
    keeps: Option<Outcome>,
    /// Charged calls that it took to know.
    calls: u64,
}

/// A look at each blob of a page, in its order; at none of them unless a deep plan is asked for.
async fn looks(
    core: &Core,
    place: &Place,
    items: &[BlobItem],
    decided: &[Decision],
    deep: bool,
) -> Result<Vec<Look>, SweepError> {
    if !deep {
        return Ok(vec![Look::default(); items.len()]);
    }
    let all = items.iter().zip(decided);
    stream::iter(all.map(|(item, decision)| look(core, place, item, decision)))
        .buffered(core.config.parallelism)
        .try_collect()
        .await
}

/// In the order in which a sweep comes upon it: a move begins at its destination, and every blob
/// ends with its delete.
async fn look(
    core: &Core,
    place: &Place,
    item: &BlobItem,
    decision: &Decision,
) -> Result<Look, SweepError> {
    let mut look = Look::default();
    if !decision.removes() {
        return Ok(look);
    }
    let blob = BlobId::new(&place.container, &item.name);
    if let Decision::Move { destination, .. } = decision {
        look.calls += 1;
        let seen = &item.properties;
        let check = inspect::standing(core, place, &blob, seen, destination).await?;
        look.keeps = check.keeps;
    }
    if look.keeps.is_none() && core.config.snapshots == DeleteSnapshots::Refuse {
        look.calls += 1;
        let check = inspect::snapshots(core, place.storage.as_ref(), &blob).await?;
        look.keeps = check.keeps;
    }
    Ok(look)
}
