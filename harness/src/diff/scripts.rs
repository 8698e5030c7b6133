//! The scripts for both sides: generated histories, and traces.

use std::path::Path;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use smalt_model::Model;
use smalt_model::vocabulary::Operation;
use smalt_model::vocabulary::tables::{TableMalformed, TableOperation};

use super::finding::Lane;
use crate::histories::generate::{Space, TABLE_DICE, choose};
use crate::histories::server::{START_S, Server};
use crate::replay::corpus::{self, CorpusError};
use crate::replay::recording::Recording;
use crate::traces::format::Trace;
use crate::traces::{convert, history};

/// Directory of histories in a recorded side; the other files are traces.
const HISTORIES: &str = "histories/";

/// A script: requests to send to both sides.
#[derive(Clone, Debug)]
pub struct Script {
    /// Name of the script.
    pub name: String,
    /// Kind of the script.
    pub lane: Lane,
    /// Seed of a generated history.
    pub seed: Option<u64>,
    /// Requests, with answers to bind values to.
    pub recording: Recording,
}

/// Which histories to generate.
#[derive(Clone, Copy, Debug)]
pub struct Histories {
    /// The first seed.
    pub seed: u64,
    /// Number of histories of containers, blobs and queues.
    pub count: u32,
    /// Number of additional histories of tables.
    pub tables: u32,
    /// Operations in each history.
    pub operations: usize,
    /// Maximum time step in seconds; longer steps are left out, because a server without a settable
    /// clock waits for them.
    pub wait_s_max: u64,
}

/// Generates a history of containers, blobs and queues.
pub fn operations(seed: u64, which: &Histories) -> Vec<Operation> {
    generate(seed, which, Space::NARROW, |operation| match operation {
        Operation::Advance { seconds } => *seconds <= which.wait_s_max,
        _ => true,
    })
}

/// Generates a history of tables.
pub fn of_tables(seed: u64, which: &Histories) -> Vec<Operation> {
    generate(seed, which, Space::NARROW_TABLES, |operation| {
        !makes_its_token(operation) && (seed.is_multiple_of(2) || !splits(operation))
    })
}

/// Generates the operations of a space that `keeps` selects.
fn generate(
    seed: u64,
    which: &Histories,
    space: Space,
    keeps: impl Fn(&Operation) -> bool,
) -> Vec<Operation> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut model = Model::new(START_S);
    let mut history = Vec::with_capacity(which.operations);
    while history.len() < which.operations {
        let mut dice = [0; TABLE_DICE];
        random.fill_bytes(&mut dice[..space.dice()]);
        let operation = choose(&model, space, &dice[..space.dice()]);
        if keeps(&operation) {
            model.step(&operation);
            history.push(operation);
        }
    }
    history
}

/// Whether the operation continues from an invented token, whose format is specific to each
/// service. Other queries continue from the tokens that they receive.
fn makes_its_token(operation: &Operation) -> bool {
    let Operation::Table(_, operation) = operation else {
        return false;
    };
    matches!(operation, TableOperation::Page { from: Some(_), .. })
}

/// Whether the operation is known to leave Azurite and smalt in different states, so that later
/// answers are meaningless: another spelling of a table's name, the ETags of a transaction, a
/// property name that only Azurite accepts. Every second history leaves these out.
fn splits(operation: &Operation) -> bool {
    let Operation::Table(name, operation) = operation else {
        return false;
    };
    let is_respelt = name.chars().all(|c| c.is_ascii_lowercase());
    is_respelt
        || match operation {
            TableOperation::Malformed(TableMalformed::PropertyName) => true,
            TableOperation::Batch(changes) => changes.len() > 1,
            _ => false,
        }
}

/// Returns generated histories as scripts, one per service that they use.
///
/// # Errors
/// When smalt's answers to a history contradict the model, which is the domain of `harness check
/// histories`.
pub async fn histories(which: &Histories) -> Result<Vec<Script>, String> {
    let mut scripts = Vec::new();
    for seed in (which.seed..).take(which.count as usize) {
        scripts.extend(told(seed, &operations(seed, which)).await?);
    }
    for seed in (which.seed..).take(which.tables as usize) {
        scripts.extend(told(seed, &of_tables(seed, which)).await?);
    }
    Ok(scripts)
}

/// Returns one history as scripts.
async fn told(seed: u64, history: &[Operation]) -> Result<Vec<Script>, String> {
    let told = history::tell(Server::in_memory()?, history, Some(seed)).await;
    if let Some(failure) = told.failure {
        let (operation, difference) = (failure.operation, failure.difference);
        return Err(format!(
            "history {seed}: smalt and the model disagree: {operation:?}: {difference}"
        ));
    }
    let script = |trace: Trace| {
        let name = format!("{HISTORIES}{}-{seed}", trace.header.service.as_str());
        let recording = convert::of_trace(&name, trace).map_err(|e| e.to_string())?;
        Ok(Script {
            name,
            lane: Lane::Histories,
            seed: Some(seed),
            recording,
        })
    };
    told.traces.into_iter().map(script).collect()
}

/// Returns the traces of a directory as scripts.
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

    /// The same seed gives the same history, and no time step exceeds the limit.
    #[test]
    fn histories_are_made_from_their_seed() {
        let which = Histories {
            seed: 0,
            count: 1,
            tables: 1,
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
        // Steps of one second are rare; a single history may have none.
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

    /// The same for tables; no history invents a continuation token.
    #[test]
    fn histories_of_tables_are_made_from_their_seed() {
        let which = Histories {
            seed: 0,
            count: 0,
            tables: 1,
            operations: 200,
            wait_s_max: 0,
        };
        let history = |seed| of_tables(seed, &which);
        let first = history(3);
        assert_eq!(first.len(), 200);
        assert_eq!(format!("{first:?}"), format!("{:?}", history(3)));
        assert_ne!(format!("{first:?}"), format!("{:?}", history(4)));
        assert!(!first.iter().any(splits) && history(4).iter().any(splits));
        let pages = first.iter().filter(|one| {
            matches!(
                one,
                Operation::Table(_, TableOperation::Page { from: None, .. })
            )
        });
        assert!(pages.count() > 0);
        assert!(!first.iter().any(makes_its_token));
    }
}
