//! What one connection did in a round, in order: every state that its end could have left.

use std::collections::{BTreeMap, BTreeSet};

use super::content::Content;
use super::model::{Blob, Model, Op, Outcome, Unique};

/// An operation that was acknowledged.
#[derive(Clone, Debug)]
pub struct Step {
    /// The operation.
    pub op: Op,
    /// What the acknowledgement said.
    pub outcome: Outcome,
    /// The place of its sending among what all connections sent and heard.
    pub begun: u64,
    /// The place of its acknowledgement.
    pub done: u64,
    /// When that was.
    pub at_ms: u64,
}

/// A connection's round.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The state before.
    pub base: Model,
    /// What was acknowledged.
    pub steps: Vec<Step>,
    /// What was not, and the place of its sending.
    pub pending: Option<(Op, u64)>,
    /// The process was killed no earlier.
    pub until_ms: u64,
}

/// How much of a history is there: between so many of its operations and so many, the unanswered
/// one included. They are the same where every operation shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// So many are there for certain.
    pub first: usize,
    /// What comes after so many is missing for certain.
    pub last: usize,
}

impl History {
    /// Nothing so far.
    pub fn of(base: &Model) -> Self {
        History {
            base: base.clone(),
            ..History::default()
        }
    }

    /// Notes an operation that is sent.
    pub fn begin(&mut self, op: Op, place: u64) {
        self.pending = Some((op, place));
    }

    /// Notes that it was acknowledged.
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

    /// The operation at this place, the unanswered one at the end.
    pub fn op(&self, at: usize) -> Option<&Op> {
        let acknowledged = self.steps.get(at).map(|step| &step.op);
        let pending = || self.pending.as_ref().map(|(op, _)| op);
        acknowledged.or_else(|| (at == self.steps.len()).then(pending).flatten())
    }

    /// When it was sent.
    pub fn begun(&self, at: usize) -> Option<u64> {
        let acknowledged = self.steps.get(at).map(|step| step.begun);
        let pending = || self.pending.as_ref().map(|(_, begun)| *begun);
        acknowledged.or_else(|| (at == self.steps.len()).then(pending).flatten())
    }

    /// Operations that were acknowledged and are missing.
    pub fn lost(&self, cut: Cut) -> usize {
        self.steps.len().saturating_sub(cut.last)
    }

    /// The age of the oldest of them when the process was killed.
    pub fn age_ms(&self, cut: Cut) -> u64 {
        let lost = self.steps.get(cut.last);
        lost.map_or(0, |step| self.until_ms.saturating_sub(step.at_ms))
    }

    /// Every state: after none of the operations, after one, and so on; at last the one in which
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

    /// The state after so many operations.
    pub fn state(&self, count: usize) -> Model {
        let mut found = Model::default();
        self.each_state(|at, model| {
            if at == count {
                found = model.clone();
            }
        });
        found
    }

    /// Names of all blobs that there may be.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.base.blobs.keys().cloned().collect();
        let pending = self.pending.as_ref().map(|(op, _)| op);
        for op in self.steps.iter().map(|step| &step.op).chain(pending) {
            if let Op::PutBlob { name, .. } = op {
                names.insert(name.clone());
            }
        }
        names
    }

    /// Every blob that was acknowledged, by its ETag.
    pub fn blobs(&self) -> BTreeMap<String, Blob> {
        let mut all = BTreeMap::new();
        let mut model = self.base.clone();
        let mut note = |blob: &Blob| drop(all.insert(blob.etag.clone(), blob.clone()));
        model.blobs.values().for_each(&mut note);
        for step in &self.steps {
            model.acknowledge(step.op.clone(), step.outcome.clone(), &Unique::default());
            if let Op::PutBlob { name, .. } | Op::SetMetadata { name, .. } = &step.op {
                model.blobs.get(name).into_iter().for_each(&mut note);
            }
        }
        all
    }

    /// Every text that a message may have, by its id; those of a put without an answer have none.
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

    /// The deletion of a blob that never was: it changes nothing.
    pub(crate) fn delete(n: u64) -> Op {
        Op::DeleteBlob {
            name: format!("d{n}"),
        }
    }

    /// A history of operations and the ETags that they were told.
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
    fn every_state_is_shown_and_the_pending_one_last() {
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
        assert_eq!(all.names().len(), 3);
        assert_eq!(all.blobs().len(), 3);
        assert_eq!(
            (all.begun(2), all.begun(3), all.begun(4)),
            (Some(4), Some(9), None)
        );
        assert_eq!(all.op(3), Some(&put("c")));
    }
}
