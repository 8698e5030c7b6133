//! What a child logs before it dies: a line for each beginning and each end of an operation.
//!
//! Each line is written to a file with one system call. Complete lines survive `kill -9`; a
//! truncated line counts as never sent.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::files;
use super::model::{Model, Op, Outcome, Unique};
use super::property::{Flaw, Property};

/// An event, which is one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The store is open.
    Opened,
    /// The store cannot be opened, with its error.
    CannotOpen(String),
    /// A connection sends an operation.
    Begin {
        /// Number of the connection.
        worker: usize,
        /// The operation.
        op: Op,
    },
    /// An operation was acknowledged.
    Done {
        /// Number of the connection.
        worker: usize,
        /// Contents of the acknowledgement.
        outcome: Outcome,
    },
    /// An operation failed with a 5xx, and the store accepts writes: it did not happen.
    Refused {
        /// Number of the connection.
        worker: usize,
        /// The answer.
        text: String,
        /// Whether it may have happened nevertheless.
        is_uncertain: bool,
    },
    /// An operation failed with a 5xx, and the store is read-only: it may have happened.
    ReadOnly {
        /// Number of the connection.
        worker: usize,
        /// The answer.
        text: String,
        /// Whether the store reports that it may fail reads as well.
        cut_off: bool,
    },
    /// A reset began or ended.
    Reset {
        /// Whether it ended.
        done: bool,
    },
    /// A flaw that the child itself found.
    Wrong(Flaw),
    /// The child has done all its work.
    End,
}

/// The log of a child's events.
pub struct Log(Mutex<std::fs::File>);

impl Log {
    /// Opens the log to append to it.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        files::append(path).map(|file| Log(Mutex::new(file)))
    }

    /// Writes a line.
    pub fn tell(&self, event: &Event) -> std::io::Result<()> {
        let line = serde_json::to_string(event)? + "\n";
        let mut file = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(line.as_bytes())
    }
}

/// Summary of a child's events.
#[derive(Debug, Default)]
pub struct Told {
    /// Number of acknowledged operations.
    pub acknowledged: u64,
    /// Number of operations that failed.
    pub refused: u64,
    /// Whether the store was opened.
    pub opened: bool,
    /// Why the store was not opened.
    pub cannot_open: Option<String>,
    /// Whether the child did all its work.
    pub ended: bool,
    /// Whether the store became read-only.
    pub read_only: bool,
    /// Whether the store reported that it may fail reads as well.
    pub cut_off: bool,
    /// Whether a reset ended; `None` when none began.
    pub reset: Option<bool>,
    /// Flaws in the answers.
    pub flaws: Vec<Flaw>,
}

/// Parses the complete lines.
pub fn parse(text: &str) -> Vec<Event> {
    let whole = text
        .rsplit_once('\n')
        .map_or("", |(whole, _)| whole)
        .lines();
    whole
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Applies the events to the models.
pub fn replay(events: &[Event], models: &mut [Model], unique: &Unique) -> Told {
    let mut told = Told::default();
    let mut refused = BTreeSet::new();
    for event in events {
        match event {
            Event::Opened => told.opened = true,
            Event::CannotOpen(text) => told.cannot_open = Some(text.clone()),
            // Once the store is read-only, only the operation that met the failure is uncertain.
            Event::Begin { worker, .. } if refused.contains(worker) => {}
            Event::Begin { worker, op } => {
                if let Some(model) = models.get_mut(*worker) {
                    model.pending = Some(op.clone());
                }
            }
            Event::Done { worker, outcome } => {
                let Some(model) = models.get_mut(*worker) else {
                    continue;
                };
                told.acknowledged += 1;
                if refused.contains(worker) {
                    let text = "a write was acknowledged after one that failed";
                    told.flaws.push(Flaw::new(Property::C1, text));
                }
                if let Some(op) = model.pending.take() {
                    let flaws = model.acknowledge(op, outcome.clone(), unique);
                    told.flaws.extend(flaws);
                }
            }
            Event::Refused {
                worker,
                is_uncertain,
                ..
            } => {
                told.refused += 1;
                if let Some(model) = models.get_mut(*worker) {
                    model.pending = None;
                    model.uncertain_gets += u32::from(*is_uncertain);
                }
            }
            Event::ReadOnly {
                worker, cut_off, ..
            } => {
                told.refused += 1;
                told.read_only = true;
                told.cut_off |= cut_off;
                refused.insert(*worker);
            }
            Event::Reset { done } => {
                told.reset = Some(*done);
                if *done {
                    models.fill(Model::default());
                }
            }
            Event::Wrong(flaw) => told.flaws.push(flaw.clone()),
            Event::End => told.ended = true,
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::content::Content;

    fn put(name: &str) -> Event {
        Event::Begin {
            worker: 0,
            op: Op::PutBlob {
                name: name.to_owned(),
                content: Content { seed: 1, length: 2 },
                mark: 3,
                in_blocks: false,
            },
        }
    }

    fn done(etag: &str) -> Event {
        Event::Done {
            worker: 0,
            outcome: Outcome {
                etag: etag.to_owned(),
                ..Outcome::default()
            },
        }
    }

    #[test]
    fn truncated_lines_are_ignored() {
        let whole = serde_json::to_string(&put("a")).unwrap();
        let text = format!("{whole}\n{whole}\n{}", &whole[..whole.len() - 1]);
        assert_eq!(parse(&text).len(), 2);
        assert_eq!(parse(&whole).len(), 0);
    }

    #[test]
    fn events_make_the_model() {
        let mut models = [Model::default()];
        let unique = Unique::default();
        let events = [put("a"), done("e1"), put("b")];
        let told = replay(&events, &mut models, &unique);
        assert_eq!((told.acknowledged, told.ended), (1, false));
        assert_eq!(models[0].blobs["a"].etag, "e1");
        assert!(models[0].pending.is_some());
        // It finds an ETag that was given before.
        let told = replay(&[put("b"), done("e1")], &mut models, &unique);
        assert_eq!(told.flaws[0].property, Property::C4);
        // It also finds an acknowledgement after the store became read-only.
        let text = String::new();
        let events = [
            put("c"),
            Event::ReadOnly {
                worker: 0,
                text,
                cut_off: false,
            },
            put("d"),
            done("e2"),
        ];
        let told = replay(&events, &mut models, &unique);
        assert_eq!(told.flaws[0].property, Property::C1);
    }
}
