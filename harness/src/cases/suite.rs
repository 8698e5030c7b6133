//! Runs all cases against one target in sequence, and cleans up.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use smalt_protocol::Service;

use super::case::{Case, Step};
use super::checks::Played;
use super::file::{self, FileError};
use super::place::Place;
use super::play::{self, Player};
use crate::target::{Ability, Target};
use crate::wire::{Answer, Request};

/// Names and contents of files that are part of the harness.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$((
            $name,
            include_str!(concat!("../../../fixtures/cases/conform/", $name, ".case")),
        )),*]
    };
}

/// The built-in conformance suite: name and content of each file. Data Lake Storage comes first,
/// because an account changes its namespace only while it has no containers, deleted ones included.
pub const FILES: &[(&str, &str)] = files![
    "data_lake",
    "account",
    "anonymous_and_signatures",
    "append_blobs",
    "batch",
    "blob_leases",
    "blobs",
    "blocks",
    "conditions",
    "container_leases",
    "containers",
    "copies",
    "entities",
    "listings",
    "messages",
    "page_blobs",
    "protection",
    "queries",
    "queues",
    "snapshots_and_versions",
    "tables",
    "tags",
    "tiers",
];

/// Parses the conformance suite.
pub fn scenarios() -> Result<Vec<Case>, FileError> {
    file::collect(FILES.iter().copied())
}

/// The parameters of a run besides its scenarios.
pub struct Plan<'a> {
    /// Prefix of the names of containers and queues.
    pub prefix: &'a str,
    /// Called after each scenario.
    pub progress: &'a (dyn Fn() + Sync),
    /// Set to prevent further scenarios from starting.
    pub stopped: &'a AtomicBool,
}

/// Runs scenarios in order.
pub async fn run(target: &dyn Target, scenarios: &[Case], plan: &Plan<'_>) -> Vec<Played> {
    let mut all = Vec::with_capacity(scenarios.len());
    for (number, scenario) in scenarios.iter().enumerate() {
        if plan.stopped.load(Ordering::Relaxed) {
            break;
        }
        let prefix = format!("{}-{number}", plan.prefix);
        all.push(play(target, scenario, &prefix).await);
        (plan.progress)();
    }
    all
}

/// Runs one scenario with unique names, and cleans up.
pub async fn play(target: &dyn Target, scenario: &Case, prefix: &str) -> Played {
    let mut played = Played {
        name: scenario.name.clone(),
        area: scenario.area.clone(),
        service: scenario.service.as_str().to_owned(),
        source: scenario.source.clone(),
        skipped: None,
        calls: Vec::new(),
    };
    if let Some(lacking) = target.about().lacks(&scenario.needs) {
        played.skipped = Some(lacking.lacking().to_owned());
        return played;
    }
    let mut player = Player::new(target, scenario, prefix);
    let before = match kept(&mut player, scenario).await {
        Ok(before) => before,
        Err(problem) => {
            played.skipped = Some(problem);
            return played;
        }
    };
    match player.prepare().await {
        Ok(()) => played.calls = player.steps().await,
        Err(problem) => played.skipped = Some(format!("the preparation failed: {problem}")),
    }
    let cleaned = player.clean_up().await;
    let restored = restored(&mut player, scenario, before).await;
    if let Err(problem) = cleaned.and(restored) {
        tracing::warn!(
            scenario = scenario.name,
            problem,
            "not everything was removed"
        );
    }
    played
}

/// Removes all containers, queues and tables whose name begins with `prefix`, which an interrupted
/// scenario left. Returns how many there were.
pub async fn sweep(target: &dyn Target, prefix: &str) -> Result<usize, String> {
    let mut removed = 0;
    let listed = format!("?comp=list&prefix={prefix}");
    let letters = play::table_name(prefix, "");
    // `~` sorts after all letters and digits.
    let tables = format!(
        "Tables?$filter=TableName%20ge%20'{letters}'%20and%20TableName%20lt%20'{letters}~'"
    );
    for (service, place, path, element) in [
        (
            Service::Blob,
            "c",
            &listed,
            ("/EnumerationResults/Containers/Container", "Name"),
        ),
        (
            Service::Queue,
            "q",
            &listed,
            ("/EnumerationResults/Queues/Queue", "Name"),
        ),
        (Service::Table, "t", &tables, ("/value", "TableName")),
    ] {
        let scenario = Case {
            name: "sweep".to_owned(),
            area: String::new(),
            service,
            source: String::new(),
            needs: Vec::new(),
            settings: None,
            makes: Vec::new(),
            removes: vec![place],
            steps: Vec::new(),
        };
        let mut player = Player::new(target, &scenario, prefix);
        let answer = ask(&mut player, service, path, None).await?;
        let (all, name) = element;
        let count = Place::parse(all).count(&answer);
        for number in 1..=count {
            let name = Place::parse(&format!("{all}[{number}]/{name}")).value(&answer);
            let name = name.unwrap_or_default();
            // Nothing else is removed, whatever the target lists for a prefix.
            if !name.starts_with(prefix) && !name.starts_with(&letters) {
                return Err(format!("the target listed {name} for the prefix {prefix}"));
            }
            player.remove(place, name).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

const PROPERTIES_PATH: &str = "?restype=service&comp=properties";

/// Returns the service properties, if the scenario changes them.
pub(super) async fn kept(
    player: &mut Player<'_>,
    scenario: &Case,
) -> Result<Option<Answer>, String> {
    if !scenario.needs.contains(&Ability::ServiceProperties) {
        return Ok(None);
    }
    let answer = ask(player, scenario.service, PROPERTIES_PATH, None).await?;
    if answer.status == 200 {
        Ok(Some(answer))
    } else {
        Err("cannot read the service properties, so they could not be restored".to_owned())
    }
}

pub(super) async fn restored(
    player: &mut Player<'_>,
    scenario: &Case,
    before: Option<Answer>,
) -> Result<(), String> {
    let Some(before) = before else {
        return Ok(());
    };
    let body = String::from_utf8_lossy(&before.body).into_owned();
    let set = ask(player, scenario.service, PROPERTIES_PATH, Some(body)).await?;
    if set.status == 202 {
        Ok(())
    } else {
        Err(format!("service properties: {}", set.status))
    }
}

/// Sends a request of the runner itself.
async fn ask(
    player: &mut Player<'_>,
    service: Service,
    path: &str,
    body: Option<String>,
) -> Result<Answer, String> {
    let method = if body.is_some() { "PUT" } else { "GET" };
    let step = Step::new(service, method, path);
    let request: Request = match body {
        // The document comes from the service, so nothing in it may be expanded.
        Some(body) => {
            let body = body.trim_start_matches('\u{feff}').to_owned();
            player.values.keep("properties", body);
            let body = Some("{properties}".to_owned());
            player.request(&Step { body, ..step })?
        }
        None => player.request(&step)?,
    };
    player
        .send(request)
        .await
        .map_err(|error| error.to_string())
}

/// Returns the operations that no scenario calls, as `service id`.
pub fn uncovered(scenarios: &[Case]) -> Vec<String> {
    let called: BTreeSet<(&str, &str)> = scenarios
        .iter()
        .flat_map(|scenario| {
            let steps = scenario.steps.iter();
            steps.map(|step| (step.service.as_str(), step.operation_id()))
        })
        .collect();
    smalt::register::all()
        .filter(|entry| entry.is_built())
        .map(|entry| (entry.service.as_str(), entry.id))
        .filter(|row| !called.contains(row))
        .map(|(service, id)| format!("{service} {id}"))
        .collect()
}
