//! The fault map: every operation with every kind of fault, and the results.
//!
//! For each operation a scenario runs up to the step that calls it. Then the fault is planned, the
//! step runs, and runs again without the fault. A fault before the operation must have no effect:
//! the second answer is the one that the scenario expects of the first. After a fault behind the
//! operation its effect stays, and the second answer shows that, as a client sees it that repeats a
//! call whose answer was lost.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use smalt::faults::{Fault, Rule};

use super::case::{Case, Step};
use super::checks::{Called, Outcome, shown};
use super::expect::Aspect;
use super::play::Player;
use super::suite::{self, Plan};
use crate::target::{Ability, Target, TargetError};
use crate::wire::{Answer, Request};

/// Value of `Retry-After`, in seconds.
const RETRY_AFTER_S: u64 = 1;
/// Delay in milliseconds; the shortest one possible.
const DELAY_MS: u64 = 1;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The answer is delayed.
    Latency,
    /// The answer is 500.
    InternalError,
    /// The answer is 503 with `Retry-After`.
    Busy,
    /// The connection breaks before the request is executed.
    Reset,
    /// The connection breaks after the request is executed.
    AnswerLost,
    /// The answer's body is cut.
    CutBody,
}

impl Kind {
    /// All kinds, in the order of the map.
    pub const ALL: [Kind; 6] = [
        Kind::Latency,
        Kind::InternalError,
        Kind::Busy,
        Kind::Reset,
        Kind::AnswerLost,
        Kind::CutBody,
    ];

    /// Returns the name in the map.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Latency => "latency",
            Kind::InternalError => "500",
            Kind::Busy => "503",
            Kind::Reset => "reset",
            Kind::AnswerLost => "answer lost",
            Kind::CutBody => "body cut",
        }
    }

    fn fault(self) -> Fault {
        let refuse = |status, retry_after_s| Fault::Refuse {
            status,
            retry_after_s,
        };
        match self {
            Kind::Latency => Fault::Latency { delay_ms: DELAY_MS },
            Kind::InternalError => refuse(500, None),
            Kind::Busy => refuse(503, Some(RETRY_AFTER_S)),
            Kind::Reset => Fault::Reset,
            Kind::AnswerLost => Fault::AnswerLost,
            Kind::CutBody => Fault::CutBody { after_bytes: 1 },
        }
    }

    /// Whether the request is executed in spite of the fault.
    const fn is_after(self) -> bool {
        matches!(self, Kind::AnswerLost | Kind::CutBody)
    }

    /// Whether the first answer is what this fault should give; `None` stands for no answer.
    fn shows(self, first: Option<&Answer>, called: Option<&Called>) -> bool {
        let refused = |status, code: &str| {
            first.is_some_and(|answer| {
                answer.status == status && answer.error_code().as_deref() == Some(code)
            })
        };
        match self {
            Kind::Latency => called.is_some_and(holds),
            Kind::InternalError => refused(500, "InternalError"),
            Kind::Busy => {
                let after = first.and_then(|answer| answer.headers.get("retry-after"));
                refused(503, "ServerBusy") && after == Some("1")
            }
            Kind::Reset | Kind::AnswerLost => first.is_none(),
            // An answer without a body cannot be cut.
            Kind::CutBody => first.is_none() || called.is_some_and(holds),
        }
    }
}

/// One cell of the map.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hit {
    /// Name of the service.
    pub service: String,
    /// Operation id.
    pub operation: String,
    /// Kind of the fault.
    pub kind: Kind,
    /// What the client saw.
    pub first: String,
    /// What the client saw in the repeated call.
    pub again: String,
    /// Whether the repeated call gave the answer that the scenario expects of a single call.
    pub repeatable: bool,
    /// Whether the cell is as required.
    pub right: bool,
}

/// Returns the first successful step of each operation, from the scenarios that this target can
/// run.
fn places<'a>(
    target: &dyn Target,
    scenarios: &'a [Case],
) -> BTreeMap<(&'static str, &'static str), (&'a Case, usize)> {
    let mut places = BTreeMap::new();
    for scenario in scenarios {
        if target.about().lacks(&scenario.needs).is_some() {
            continue;
        }
        for (at, step) in scenario.steps.iter().enumerate() {
            let row = (step.service.as_str(), step.operation_id());
            if !row.1.is_empty() && step.succeeds() && !step.expects.is_empty() {
                places.entry(row).or_insert((scenario, at));
            }
        }
    }
    places
}

/// Returns the number of cells in the map of this target.
pub fn cells(target: &dyn Target, scenarios: &[Case]) -> usize {
    places(target, scenarios).len() * Kind::ALL.len()
}

/// Creates the map.
///
/// # Errors
/// When the target does not support faults.
pub async fn map(
    target: &dyn Target,
    scenarios: &[Case],
    plan: &Plan<'_>,
) -> Result<Vec<Hit>, TargetError> {
    target.fired().await?;
    let mut hits = Vec::new();
    for (number, (row, (scenario, at))) in places(target, scenarios).into_iter().enumerate() {
        for kind in Kind::ALL {
            if plan.stopped.load(Ordering::Relaxed) {
                return Ok(hits);
            }
            let prefix = format!("{}-f{number}-{}", plan.prefix, kind as u8);
            let mut player = Player::new(target, scenario, &prefix);
            let hit = guarded(&mut player, scenario, at, kind).await;
            hits.push(hit.unwrap_or_else(|problem| nothing(row, kind, problem)));
            (plan.progress)();
        }
    }
    Ok(hits)
}

/// Runs one cell and cleans up.
async fn guarded(
    player: &mut Player<'_>,
    scenario: &Case,
    at: usize,
    kind: Kind,
) -> Result<Hit, String> {
    let properties = suite::kept(player, scenario).await?;
    let hit = hit(player, scenario, at, kind).await;
    let cleared = player.target().fired().await;
    player.clean_up().await?;
    suite::restored(player, scenario, properties).await?;
    cleared.map_err(|error| error.to_string())?;
    hit
}

fn nothing((service, operation): (&str, &str), kind: Kind, problem: String) -> Hit {
    Hit {
        service: service.to_owned(),
        operation: operation.to_owned(),
        kind,
        first: problem,
        again: String::new(),
        repeatable: false,
        right: false,
    }
}

async fn hit(
    player: &mut Player<'_>,
    scenario: &Case,
    at: usize,
    kind: Kind,
) -> Result<Hit, String> {
    player.prepare().await?;
    let (before, step) = scenario.steps.split_at(at);
    for step in before {
        let (called, _) = player.step(step).await;
        if !holds(&called) {
            return Err(format!("{}: {}", called.operation, called.answer));
        }
    }
    let step = step.first().ok_or("no such step")?;
    let (first, fired) = faulted(player, step, kind).await?;
    let called = first
        .as_ref()
        .map(|answer| player.judge(step, String::new(), answer));
    let again = player.send(player.request(step)?).await;
    let again = again.map_err(|error| error.to_string())?;
    let repeatable = holds(&player.judge(step, String::new(), &again));
    let is_right = kind.shows(first.as_ref(), called.as_ref()) && fired == 1;
    Ok(Hit {
        service: scenario.service.as_str().to_owned(),
        operation: step.operation_id().to_owned(),
        kind,
        first: first.as_ref().map_or("no answer".to_owned(), shown),
        again: shown(&again),
        repeatable,
        right: is_right
            && again.status < 500
            && (repeatable || kind.is_after() || kind == Kind::Latency),
    })
}

/// Runs a step under a fault; returns the answer, if any, and how often the fault fired.
async fn faulted(
    player: &mut Player<'_>,
    step: &Step,
    kind: Kind,
) -> Result<(Option<Answer>, u64), String> {
    let request: Request = player.ready(step).await?;
    let rule = Rule {
        operation: step.operation_id().to_owned(),
        resource: String::new(),
        nth: 1,
        times: 1,
        fault: kind.fault(),
    };
    let text = |error: TargetError| error.to_string();
    player.target().plan(&rule).await.map_err(text)?;
    let first = player.send(request).await.ok();
    let fired = player.target().fired().await.map_err(text)?;
    Ok((first, fired))
}

/// Whether all checks hold except relations, which refer to the first answer.
fn holds(called: &Called) -> bool {
    let mut checks = called.checks.iter();
    checks.all(|check| check.outcome == Outcome::Passed || check.aspect == Aspect::Relations)
}

/// Abilities that a target needs for a map.
pub const NEEDS: &[Ability] = &[Ability::Faults];
