//! The acknowledged operations of one connection in a round, in order, and every state to which a
//! loss of the last ones leads.

use std::collections::BTreeMap;

use super::content::Content;
use super::model::{Model, Op, Outcome, Unique};

/// An acknowledged operation.
#[derive(Clone, Debug)]
pub struct Step {
    /// The operation.
    pub op: Op,
    /// Contents of the acknowledgement.
    pub outcome: Outcome,
    /// Position of its sending in the order of all connections' sends and acknowledgements.
    pub begun: u64,
    /// Position of its acknowledgement in that order.
    pub done: u64,
    /// Time of its acknowledgement, in milliseconds.
    pub at_ms: u64,
}

/// One connection's operations in a round.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// State before the round.
    pub base: Model,
    /// Acknowledged operations.
    pub steps: Vec<Step>,
    /// Unanswered operation, and the position of its sending.
    pub pending: Option<(Op, u64)>,
    /// The process was killed at this time or later.
    pub until_ms: u64,
}

/// How much of a history exists: a range of numbers of operations, including the unanswered one.
/// Both ends are equal where every operation shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// This many operations certainly exist.
    pub first: usize,
    /// All operations after this many are certainly missing.
    pub last: usize,
}

impl History {
    /// Creates an empty history.
    pub fn of(base: &Model) -> Self {
        History {
            base: base.clone(),
            ..History::default()
        }
    }

    /// Creates the history of a connection that may have lost nothing but an unanswered operation.
    pub fn after(model: &Model) -> Self {
        History {
            pending: model.pending.clone().map(|op| (op, 0)),
            ..History::of(model)
        }
    }

    /// Records that an operation is sent.
    pub fn begin(&mut self, op: Op, place: u64) {
        self.pending = Some((op, place));
    }

    /// Records that the operation was acknowledged.
    pub fn acknowledge(&mut self, outcome: Outcome, place: u64, at_ms: u64) {
        if let Some((op, begun)) = self.pending.take() {
            self.steps.push(Step {
                op,
                outcome,
                begun,
                done: place,
                at_ms,
            });
        }
    }

    /// Returns the operation at this index; the last one is the unanswered one.
    pub fn op(&self, at: usize) -> Option<&Op> {
        let acknowledged = self.steps.get(at).map(|step| &step.op);
        let pending = || self.pending.as_ref().map(|(op, _)| op);
        acknowledged.or_else(|| (at == self.steps.len()).then(pending).flatten())
    }

    /// Returns the position of its sending.
    pub fn begun(&self, at: usize) -> Option<u64> {
        let acknowledged = self.steps.get(at).map(|step| step.begun);
        let pending = || self.pending.as_ref().map(|(_, begun)| *begun);
        acknowledged.or_else(|| (at == self.steps.len()).then(pending).flatten())
    }

    /// Returns the number of acknowledged operations that are missing.
    pub fn lost(&self, cut: Cut) -> usize {
        self.steps.len().saturating_sub(cut.last)
    }

    /// Returns the age in milliseconds of the oldest missing operation at the time of the kill.
    pub fn age_ms(&self, cut: Cut) -> u64 {
        let lost = self.steps.get(cut.last);
        lost.map_or(0, |step| self.until_ms.saturating_sub(step.at_ms))
    }

    /// Passes every state to `look`: before all operations, after one, and so on; in the last state
    /// the unanswered operation is pending.
    pub fn each_state(&self, mut look: impl FnMut(usize, &Model)) {
        let mut model = self.base.clone();
        model.pending = None;
        let unique = Unique::default();
        for (count, step) in self.steps.iter().enumerate() {
            look(count, &model);
            model.acknowledge(step.op.clone(), step.outcome.clone(), &unique);
        }
        look(self.steps.len(), &model);
        if let Some((op, _)) = &self.pending {
            model.pending = Some(op.clone());
            look(self.steps.len() + 1, &model);
        }
    }

    /// Returns the state after this many operations.
    pub fn state(&self, count: usize) -> Model {
        let mut found = Model::default();
        self.each_state(|at, model| {
            if at == count {
                found = model.clone();
            }
        });
        found
    }

    /// Returns every text that a message may have, by its id; an unanswered put adds none.
    pub fn texts(&self) -> BTreeMap<String, Vec<Content>> {
        let mut all: BTreeMap<String, Vec<Content>> = BTreeMap::new();
        let mut note = |id: &String, content: Content| {
            all.entry(id.clone()).or_default().push(content);
        };
        for (id, message) in &self.base.messages {
            note(id, message.content);
        }
        for step in &self.steps {
            match &step.op {
                Op::PutMessage { content } => note(&step.outcome.id, *content),
                Op::UpdateMessage { id, content } => note(id, *content),
                _ => {}
            }
        }
        match &self.pending {
            Some((Op::PutMessage { content }, _)) => note(&String::new(), *content),
            Some((Op::UpdateMessage { id, content }, _)) => note(id, *content),
            _ => {}
        }
        all
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates a delete of a blob that never existed, which changes nothing.
    pub(crate) fn delete(n: u64) -> Op {
        Op::DeleteBlob {
            name: format!("d{n}"),
        }
    }

    /// Creates a history of operations and their acknowledged ETags.
    pub(crate) fn history(ops: Vec<(Op, &str)>) -> History {
        let mut all = History::default();
        for ((op, etag), n) in ops.into_iter().zip(0..) {
            all.begin(op, 2 * n);
            let outcome = Outcome {
                etag: etag.to_owned(),
                ..Outcome::default()
            };
            all.acknowledge(outcome, 2 * n + 1, n);
        }
        all
    }

    #[test]
    fn every_state_is_visited_and_the_pending_one_last() {
        let put = |name: &str| Op::PutBlob {
            name: name.to_owned(),
            content: Content { seed: 1, length: 1 },
            mark: 1,
            in_blocks: false,
        };
        let mut all = history(vec![(put("a"), "1"), (put("b"), "2"), (put("a"), "3")]);
        all.begin(put("c"), 9);
        let mut shown = Vec::new();
        all.each_state(|count, model| {
            shown.push((count, model.blobs.len(), model.pending.is_some()));
        });
        let expected = [(0, 0, false), (1, 1, false), (2, 2, false), (3, 2, false)];
        assert_eq!(shown[..4], expected);
        assert_eq!(shown[4..], [(4, 2, true)]);
        assert_eq!(all.state(2).blobs["a"].etag, "1");
        assert_eq!(all.state(3).blobs["a"].etag, "3");
        assert_eq!(
            (all.begun(2), all.begun(3), all.begun(4)),
            (Some(4), Some(9), None)
        );
        assert_eq!(all.op(3), Some(&put("c")));
    }
}
