//! What both sides are asked: generated histories, and traces.

use std::path::Path;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use smalt_model::Model;
use smalt_model::vocabulary::Operation;

use super::finding::Lane;
use crate::histories::generate::{DICE, Space, choose};
use crate::histories::server::{START_S, Server};
use crate::replay::corpus::{self, CorpusError};
use crate::replay::recording::Recording;
use crate::traces::{convert, history};

/// Histories below this directory of a recorded side are one lane, all else the other.
const HISTORIES: &str = "histories/";

/// Something to ask.
#[derive(Clone, Debug)]
pub struct Script {
    /// What it is called.
    pub name: String,
    /// What kind it is.
    pub lane: Lane,
    /// The seed that it was made from.
    pub seed: Option<u64>,
    /// The requests, with answers to bind to.
    pub recording: Recording,
}

/// Which histories are made.
#[derive(Clone, Copy, Debug)]
pub struct Histories {
    /// The first seed.
    pub seed: u64,
    /// How many.
    pub count: u32,
    /// Operations in each.
    pub operations: usize,
    /// Steps of time that are longer are left out: a server without a clock to set waits for them.
    pub wait_s_max: u64,
}

/// The operations of one history.
pub fn operations(seed: u64, which: &Histories) -> Vec<Operation> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut model = Model::new(START_S);
    let mut history = Vec::with_capacity(which.operations);
    while history.len() < which.operations {
        let mut dice = [0; DICE];
        random.fill_bytes(&mut dice);
        let operation = choose(&model, Space::NARROW, &dice);
        let is_kept = match &operation {
            Operation::Advance { seconds } => *seconds <= which.wait_s_max,
            Operation::Restart => false,
            _ => true,
        };
        if is_kept {
            model.step(&operation);
            history.push(operation);
        }
    }
    history
}

/// Histories as scripts, one for each service that they ask.
///
/// # Errors
/// When smalt answers a history otherwise than the model: that is for `harness histories`.
pub async fn histories(which: &Histories) -> Result<Vec<Script>, String> {
    let mut scripts = Vec::new();
    for seed in (which.seed..).take(which.count as usize) {
        let server = Server::in_memory()?;
        let told = history::tell(server, &operations(seed, which), Some(seed)).await;
        if let Some(failure) = told.failure {
            let (operation, difference) = (failure.operation, failure.difference);
            return Err(format!(
                "history {seed}: smalt and the model disagree: {operation:?}: {difference}"
            ));
        }
        for trace in told.traces {
            let name = format!("{HISTORIES}{}-{seed}", trace.header.service.as_str());
            let recording = convert::of_trace(&name, trace).map_err(|e| e.to_string())?;
            scripts.push(Script {
                name,
                lane: Lane::Histories,
                seed: Some(seed),
                recording,
            });
        }
    }
    Ok(scripts)
}

/// The traces of a directory as scripts.
///
/// # Errors
/// When one cannot be read.
pub fn traces(dir: &Path) -> Result<Vec<Script>, CorpusError> {
    let mut scripts = Vec::new();
    for name in corpus::names(dir)? {
        let recording = corpus::load(dir, &name)?;
        let stem = name
            .rsplit_once('.')
            .map_or(name.as_str(), |(stem, _)| stem);
        let lane = if stem.starts_with(HISTORIES) {
            Lane::Histories
        } else {
            Lane::Traces
        };
        scripts.push(Script {
            name: stem.to_owned(),
            lane,
            seed: None,
            recording,
        });
    }
    Ok(scripts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same seed makes the same history, and no step of time is longer than can be waited for.
    #[test]
    fn histories_are_made_from_their_seed() {
        let which = Histories {
            seed: 0,
            count: 1,
            operations: 200,
            wait_s_max: 1,
        };
        let history = operations(3, &which);
        assert_eq!(history.len(), 200);
        assert_eq!(
            format!("{history:?}"),
            format!("{:?}", operations(3, &which))
        );
        assert_ne!(
            format!("{history:?}"),
            format!("{:?}", operations(4, &which))
        );
        // A step of one second is rare: one history may well have none.
        let all = (3..13).flat_map(|seed| operations(seed, &which));
        let steps = all.filter_map(|one| match one {
            Operation::Advance { seconds } => Some(seconds),
            _ => None,
        });
        let steps: Vec<u64> = steps.collect();
        assert!(
            !steps.is_empty() && steps.iter().all(|s| *s == 1),
            "{steps:?}"
        );
    }
}
