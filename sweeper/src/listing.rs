//! Lists one range of a container and decides about every blob in it.

use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobItem, ListBlobs, PortError};

use crate::accounts::Place;
use crate::calls::lock;
use crate::claim::Kept;
use crate::decide::{self, Decision, Scene};
use crate::destination::SweptPlace;
use crate::outcome::Outcome;
use crate::report::{self, BlobRecord};
use crate::rule::asks_for_tags;
use crate::shared::Core;
use crate::state::ledger::Listed;
use crate::state::{Container, Page};

/// Maximum number of listing calls when a page is listed again; new names may have appeared in its
/// range.
const RELIST_CALLS_MAX: usize = 8;

/// A listed range with its decisions, not yet claimed.
pub(crate) struct ListedRange {
    pub(crate) listed: Listed,
    pub(crate) kept: Kept,
    pub(crate) actions: Vec<(BlobItem, Decision)>,
    /// The service's time of the decisions.
    at: Timestamp,
}

/// Lists one page, or the range of a page to reclaim. The end of such a range is known only by
/// name, because markers are opaque (D1).
pub(crate) async fn list(
    core: &Core,
    place: &Place,
    element: &Container,
    reclaimed: Option<&Page>,
    swept: &[SweptPlace],
) -> Result<ListedRange, PortError> {
    let start = reclaimed.map_or(element.token.as_str(), |page| page.start.as_str());
    let mut found = ListedRange {
        listed: Listed::default(),
        kept: Kept::default(),
        actions: Vec::new(),
        at: Timestamp::MIN,
    };
    let mut marker = (!start.is_empty()).then(|| start.to_owned());
    for _ in 0..RELIST_CALLS_MAX {
        let list = ListBlobs {
            prefix: element.prefix.clone(),
            marker,
            page_size: core.config.page_size,
            tags: asks_for_tags(&core.policy().rules),
        };
        let for_page = reclaimed.map_or("", |page| page.id.as_str());
        let account = core.paced(place.storage.as_ref(), for_page);
        let page = account.list_blobs(&place.container, &list).await?;
        let within = |item: &BlobItem| reclaimed.is_none_or(|r| item.name <= r.last);
        let beyond = page.blobs.iter().any(|item| !within(item));
        marker = page.next_marker;
        let now = page.server_time;
        found.at = now;
        for item in page.blobs.into_iter().filter(within) {
            sort_in(core, place, swept, item, now, &mut found);
        }
        if reclaimed.is_none() || beyond || marker.is_none() {
            break;
        }
    }
    note_lag(core, &found);
    found.listed.end = marker;
    found.listed.kept = found.kept.tally;
    found.listed.due = found.actions.len() as u64;
    Ok(found)
}

/// Records how long the longest-due blob has been due: how far the fleet is behind.
fn note_lag(core: &Core, found: &ListedRange) {
    let due = |decision: &Decision| match decision {
        Decision::Keep(_) => None,
        Decision::Delete { due } | Decision::Move { due, .. } => Some(*due),
    };
    let oldest = found.actions.iter().filter_map(|(_, d)| due(d)).min();
    lock(&core.gauges).lag = oldest.map_or(Duration::ZERO, |due| found.at.since(due));
}

/// Decides about a listed blob, by the time of its listing (DS15).
fn sort_in(
    core: &Core,
    place: &Place,
    swept: &[SweptPlace],
    item: BlobItem,
    now: Timestamp,
    found: &mut ListedRange,
) {
    let scene = scene(core, place, swept);
    let decision = decide::decide(&core.policy(), &scene, &item.name, &item.properties, now);
    found.kept.tally.seen += 1;
    match &mut found.listed.names {
        Some((_, last)) => last.clone_from(&item.name),
        none => *none = Some((item.name.clone(), item.name.clone())),
    }
    let Decision::Keep(outcome) = decision else {
        found.actions.push((item, decision));
        return;
    };
    report::count(&mut found.kept.tally, outcome, 0);
    *found.kept.outcomes.entry(outcome).or_insert(0) += 1;
    let detail = decide::detail(
        &core.policy(),
        &scene,
        &item.name,
        &item.properties,
        outcome,
    );
    let record = BlobRecord {
        container: place.container.clone(),
        blob: item.name,
        etag: item.properties.etag.0,
        length: item.properties.length,
        outcome,
        detail: detail.map(|text| smalt_sleeve::redact(&text)),
    };
    if matches!(outcome, Outcome::NotDue | Outcome::NoTtl) {
        // Usually most blobs: a log line for each in every cycle would bury all others.
        record.log_untouched();
    } else {
        found.kept.records.push(record);
    }
}

pub(crate) fn scene<'a>(core: &'a Core, place: &'a Place, swept: &'a [SweptPlace]) -> Scene<'a> {
    let dead = core.config.dead.account.as_deref();
    let state = core.accounts.get(&core.config.state_account);
    Scene {
        account: place.storage.account(),
        container: &place.container,
        dead_account: dead
            .and_then(|name| core.accounts.get(name))
            .map(|s| s.account()),
        state: state.map(|s| (s.account(), core.config.state_blob.container.as_str())),
        swept,
    }
}
