//! What a child tells before it dies: a line for each beginning and each end of an operation.
//!
//! The lines go to a file, one system call each. What was written survives `kill -9`; a line that
//! was cut short never reached anybody.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::files;
use super::history::History;
use super::model::{Model, Op, Outcome, Unique};
use super::property::{Flaw, Property};

/// A line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The store is open.
    Opened,
    /// The store cannot be opened, and what it says.
    CannotOpen(String),
    /// An operation of a connection is sent.
    Begin {
        /// The connection.
        worker: usize,
        /// The operation.
        op: Op,
    },
    /// It was acknowledged.
    Done {
        /// The connection.
        worker: usize,
        /// What the acknowledgement said.
        outcome: Outcome,
        /// When that was, by the child's [beat](super::beat).
        at_ms: u64,
    },
    /// It was refused with 5xx, and the store takes writes: it did not happen.
    Refused {
        /// The connection.
        worker: usize,
        /// The answer.
        text: String,
        /// Whether it may have happened all the same.
        is_uncertain: bool,
    },
    /// It was refused with 5xx, and the store takes no more writes: it may have happened.
    ReadOnly {
        /// The connection.
        worker: usize,
        /// The answer.
        text: String,
        /// Whether the store says that it may refuse reads as well.
        cut_off: bool,
    },
    /// Everything was forgotten on request, or that was begun.
    Reset {
        /// Whether it is done.
        done: bool,
    },
    /// A connection has done what it was told, and waits to be killed.
    Idle {
        /// When that was, by the child's beat.
        at_ms: u64,
    },
    /// What the child itself found wrong.
    Wrong(Flaw),
    /// The child has done what it was told.
    End,
}

/// Where a child writes its lines.
pub struct Log(Mutex<std::fs::File>);

impl Log {
    /// Appends to this file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        files::append(path).map(|file| Log(Mutex::new(file)))
    }

    /// Writes a line.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn tell(&self, event: &Event) -> std::io::Result<()> {
        let line = serde_json::to_string(event)? + "\n";
        let mut file = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(line.as_bytes())
    }
}

/// What the lines of a child come to.
#[derive(Debug, Default)]
pub struct Told {
    /// Operations that were acknowledged.
    pub acknowledged: u64,
    /// Operations that were refused.
    pub refused: u64,
    /// Whether the store was opened.
    pub opened: bool,
    /// Why it was not.
    pub cannot_open: Option<String>,
    /// Whether the child did all that it was told.
    pub ended: bool,
    /// Whether the store came to take no more writes.
    pub read_only: bool,
    /// Whether the store said that it may refuse reads as well.
    pub cut_off: bool,
    /// A reset that was begun, and whether it was done.
    pub reset: Option<bool>,
    /// What the answers show to be wrong.
    pub flaws: Vec<Flaw>,
}

/// Lines that are whole, as events.
pub fn parse(text: &str) -> Vec<Event> {
    let whole = text
        .rsplit_once('\n')
        .map_or("", |(whole, _)| whole)
        .lines();
    whole
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Brings the models up to what the events say.
pub fn replay(events: &[Event], models: &mut [Model], unique: &Unique) -> Told {
    let mut told = Told::default();
    let mut refused = BTreeSet::new();
    for event in events {
        match event {
            Event::Opened => told.opened = true,
            Event::CannotOpen(text) => told.cannot_open = Some(text.clone()),
            // Once it takes no more writes, only the operation that met the failure is uncertain.
            Event::Begin { worker, .. } if refused.contains(worker) => {}
            Event::Begin { worker, op } => {
                if let Some(model) = models.get_mut(*worker) {
                    model.pending = Some(op.clone());
                }
            }
            Event::Done {
                worker, outcome, ..
            } => {
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
            Event::Idle { .. } => {}
            Event::End => told.ended = true,
        }
    }
    told
}

/// What each connection did in a round that began with these models.
pub fn histories(events: &[Event], models: &[Model]) -> Vec<History> {
    let mut all: Vec<History> = models.iter().map(History::of).collect();
    let mut until_ms = 0;
    for (event, place) in events.iter().zip(0..) {
        match event {
            Event::Begin { worker, op } => {
                if let Some(history) = all.get_mut(*worker) {
                    history.begin(op.clone(), place);
                }
            }
            Event::Done {
                worker,
                outcome,
                at_ms,
            } => {
                until_ms = until_ms.max(*at_ms);
                if let Some(history) = all.get_mut(*worker) {
                    history.acknowledge(outcome.clone(), place, *at_ms);
                }
            }
            Event::Idle { at_ms } => until_ms = until_ms.max(*at_ms),
            _ => {}
        }
    }
    for history in &mut all {
        history.until_ms = until_ms;
    }
    all
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
            at_ms: 0,
        }
    }

    #[test]
    fn a_line_cut_short_was_never_told() {
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
        // An ETag that was given before is seen.
        let told = replay(&[put("b"), done("e1")], &mut models, &unique);
        assert_eq!(told.flaws[0].property, Property::C4);
        // So is an acknowledgement after the store said that it takes no more.
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
