//! Runs one script on both sides, and compares the answers.

use std::sync::Arc;

use smalt::Clock;

use super::finding::{Finding, Place};
use super::scripts::Script;
use super::shift;
use super::side::Standing;
use crate::replay::player::{Outcome, Played, play};
use crate::replay::recording::{Interaction, Recording};
use crate::traces::capture::Capture;
use crate::traces::convert;
use crate::traces::format::Trace;
use crate::wire::url::Url;

/// The results of one script.
#[derive(Debug)]
pub struct Compared {
    /// Number of exchanges in the script.
    pub exchanges: usize,
    /// Number of exchanges up to the first one that leaves the sides in different states.
    pub compared: usize,
    /// Differences among these exchanges.
    pub findings: Vec<Finding>,
    /// Reasons why the initial state could not be created, or a request could not be sent.
    pub problems: Vec<String>,
    /// Answers of the right side.
    pub answered: Trace,
}

/// Returns the left side's answers to a script, as a recording.
pub async fn left(script: &Script, side: &Standing) -> Result<Recording, String> {
    let (played, trace) = ask(&script.recording, script.seed, side).await;
    if !played.setup_problems.is_empty() {
        return Err(format!(
            "{}: {}",
            script.name,
            played.setup_problems.join("; ")
        ));
    }
    convert::of_trace(&script.name, trace).map_err(|e| e.to_string())
}

/// Compares the right side's answers with the left's; `left` is the name of the left side.
pub async fn compare(
    script: &Script,
    left: &str,
    recording: &Recording,
    right: &Standing,
) -> Compared {
    let (played, answered) = ask(recording, script.seed, right).await;
    let mut compared = Compared {
        exchanges: recording.interactions.len(),
        compared: 0,
        findings: Vec::new(),
        problems: played.setup_problems,
        answered,
    };
    // A side whose clock cannot be set cannot run requests of later days, so the comparison ends
    // there.
    let asked = played.too_far_ahead.unwrap_or(played.outcomes.len());
    let outcomes = played.outcomes.iter().take(asked);
    let mut is_astray = false;
    for (interaction, outcome) in recording.interactions.iter().zip(outcomes) {
        // Pages cannot be compared once the sides continued from different places.
        is_astray &= goes_on(interaction);
        if is_astray {
            continue;
        }
        compared.compared += 1;
        let differences = match outcome {
            Outcome::Passed => continue,
            Outcome::Failed(differences) => differences,
            Outcome::NotBuilt => {
                compared
                    .problems
                    .push(format!("{} is not built", interaction.operation));
                continue;
            }
            Outcome::Excused(why) => {
                compared
                    .problems
                    .push(format!("{}: {why}", interaction.operation));
                continue;
            }
        };
        let place = Place {
            lane: script.lane,
            script: &script.name,
            left,
            interaction,
        };
        let findings = place.findings(differences);
        let parted = findings.iter().any(|one| one.parts_ways(script.lane));
        is_astray = findings.iter().any(Finding::is_of_a_page);
        compared.findings.extend(findings);
        if parted {
            break;
        }
    }
    compared
}

/// Whether the exchange requests a further page of a query of entities.
fn goes_on(interaction: &Interaction) -> bool {
    let url = Url::parse(&interaction.request.url);
    url.is_some_and(|url| url.has_param("NextPartitionKey"))
}

/// Plays a recording on a side, at its own time or now, and records the answers.
async fn ask(recording: &Recording, seed: Option<u64>, side: &Standing) -> (Played, Trace) {
    let capture = Arc::new(Capture::of(side.target()));
    let played = if side.keeps_time() {
        play(capture.clone(), recording).await
    } else {
        let now = Clock::system().now();
        play(capture.clone(), &shift::to(recording.clone(), now)).await
    };
    let trace = capture.trace(recording.service, &side.name, seed).await;
    (played, trace)
}
