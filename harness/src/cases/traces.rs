//! The project's own traces as scenarios: each is replayed, and each answer compared as in `harness
//! replay`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::expect::Aspect;
use crate::replay::compare;
use crate::replay::corpus::{self, CorpusError};
use crate::replay::player::{Outcome, play};
use crate::target::Target;

/// The results of one trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// Name: `blob/leases`.
    pub name: String,
    /// Number of exchanges.
    pub exchanges: usize,
    /// Number of exchanges answered as recorded.
    pub passed: usize,
    /// Differences by aspect.
    pub differs: BTreeMap<Aspect, usize>,
}

/// Replays all traces of a directory.
pub async fn replay(dir: &Path, target: Arc<dyn Target>) -> Result<Vec<Row>, CorpusError> {
    let mut rows = Vec::new();
    for name in corpus::names(dir)? {
        let recording = corpus::load(dir, &name)?;
        let played = play(Arc::clone(&target), &recording).await;
        let mut row = Row {
            name: name.trim_end_matches(".ndjson").to_owned(),
            exchanges: played.outcomes.len(),
            ..Row::default()
        };
        for outcome in &played.outcomes {
            row.add(outcome);
        }
        rows.push(row);
    }
    Ok(rows)
}

impl Row {
    fn add(&mut self, outcome: &Outcome) {
        let differences = match outcome {
            Outcome::Passed => {
                self.passed += 1;
                return;
            }
            Outcome::Failed(differences) => differences.as_slice(),
            Outcome::NotBuilt | Outcome::Excused(_) => &[],
        };
        let mut aspects: Vec<Aspect> = differences.iter().map(|one| aspect(one.aspect)).collect();
        aspects.sort_unstable();
        aspects.dedup();
        for aspect in aspects {
            *self.differs.entry(aspect).or_default() += 1;
        }
    }
}

fn aspect(of: compare::Aspect) -> Aspect {
    match of {
        compare::Aspect::Call | compare::Aspect::Status => Aspect::Status,
        compare::Aspect::Code => Aspect::Code,
        compare::Aspect::HeaderNames | compare::Aspect::HeaderValues => Aspect::Headers,
        compare::Aspect::Body => Aspect::Body,
        compare::Aspect::Relations => Aspect::Relations,
    }
}
