//! Examines a queue after a crash: tries pop receipts, and takes every message.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::model::Model;
use super::property::{Flaw, Property, Verified};
use super::wire::{Client, Shown};
use crate::servers::ServerError;

/// Number of pop receipts of a queue that are tried.
const RECEIPTS_TRIED: usize = 10;
/// Visibility timeout in seconds of the check's own gets.
const HIDDEN_S: u64 = 2;
/// Time within which every message must become visible: those that were taken last before the crash
/// are hidden for as long as the work or the earlier check asked for.
const SHOW_UP: Duration = Duration::from_secs(5);
/// A message whose deletion was not answered may exist and be hidden: it is certainly gone only
/// after this time.
const CERTAIN: Duration = Duration::from_millis(HIDDEN_S * 1_000 + 500);
/// Pause between two gets from a queue that returns nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// The messages for which the check of a queue waits.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// Messages that exist.
    pub certain: BTreeSet<String>,
    /// Messages that may exist.
    pub doubtful: BTreeSet<String>,
}

/// A message as it was taken last, and how often this check has taken it.
pub(super) struct Taken {
    pub shown: Shown,
    pub times: u32,
    /// Time of the last get.
    asked: Instant,
}

/// C4: checks that a valid pop receipt of a message works, and that a replaced one does not.
pub(super) async fn receipts(
    client: &mut Client,
    model: &Model,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    let certain = model.messages.iter();
    let certain = certain.filter(|(id, _)| !model.is_uncertain(id));
    for (id, message) in certain.take(RECEIPTS_TRIED) {
        if let Some(replaced) = &message.replaced {
            let answer = client.try_delete_message(id, replaced).await?;
            if !matches!(answer.status, 400 | 404) {
                let text = format!("message {id}: a replaced receipt was honoured");
                verified.flaws.push(Flaw::new(Property::C4, text));
            }
        }
        let updated = client.update_message(id, &message.receipt, message.content);
        match updated.await {
            Ok(_) => {}
            Err(ServerError::Call(text)) => {
                let text = format!("message {id}: its receipt is not honoured: {text}");
                verified.flaws.push(Flaw::new(Property::C4, text));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Takes messages until every expected one was seen and no more appears.
pub(super) async fn take_all(
    client: &mut Client,
    awaited: &Awaited,
    verified: &mut Verified,
) -> Result<BTreeMap<String, Taken>, ServerError> {
    let mut found: BTreeMap<String, Taken> = BTreeMap::new();
    let begun = Instant::now();
    loop {
        let asked = Instant::now();
        let batch = client.get_messages(32, HIDDEN_S).await?;
        let answered = Instant::now();
        let is_empty = batch.is_empty();
        for shown in batch {
            let before = found.get(&shown.id);
            let hidden_until = before.map(|taken| taken.asked + Duration::from_secs(HIDDEN_S));
            if hidden_until.is_some_and(|until| answered < until) {
                let text = format!("message {} was delivered twice while hidden", shown.id);
                verified.flaws.push(Flaw::new(Property::C4, text));
            }
            let times = before.map_or(1, |taken| taken.times + 1);
            let id = shown.id.clone();
            found.insert(
                id,
                Taken {
                    shown,
                    times,
                    asked,
                },
            );
        }
        if is_empty && is_enough(awaited, &found, begun.elapsed()) {
            return Ok(found);
        }
        if is_empty {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Whether nothing more can appear.
fn is_enough(awaited: &Awaited, found: &BTreeMap<String, Taken>, waited: Duration) -> bool {
    let are_found = |ids: &BTreeSet<String>| ids.iter().all(|id| found.contains_key(id));
    let is_all = are_found(&awaited.certain);
    waited > SHOW_UP || is_all && (waited > CERTAIN || are_found(&awaited.doubtful))
}
