//! One script on both sides, and the differences between their answers.

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

/// What came out of one script.
#[derive(Debug)]
pub struct Compared {
    /// Exchanges in it.
    pub exchanges: usize,
    /// Exchanges up to the one after which the two sides are in different states.
    pub compared: usize,
    /// The differences among those.
    pub findings: Vec<Finding>,
    /// Why what must exist beforehand could not be made, and what could not be asked.
    pub problems: Vec<String>,
    /// What the right side answered.
    pub answered: Trace,
}

/// The left side's answers to a script, as a recording.
///
/// # Errors
/// In words, when it answers what no recording can hold.
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

/// The right side's answers against the left's, which is called `left`.
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
    // A side without a clock to set cannot be asked days later: nothing is to compare from there.
    let asked = played.too_far_ahead.unwrap_or(played.outcomes.len());
    let outcomes = played.outcomes.iter().take(asked);
    let mut is_astray = false;
    for (interaction, outcome) in recording.interactions.iter().zip(outcomes) {
        // Nor has each side a page like the other's where they went on from different places.
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

/// Whether it asks for a further page of a query of entities.
fn goes_on(interaction: &Interaction) -> bool {
    let url = Url::parse(&interaction.request.url);
    url.is_some_and(|url| url.has_param("NextPartitionKey"))
}

/// Plays a recording on a side, at its own time or now, and keeps what the side says.
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
