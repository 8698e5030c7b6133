//! The state of the model and its transitions.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smalt_protocol::Timestamp;
use smalt_sweeper::state::{Container, Document};
use stateright::{Model, Property};

use crate::properties;
use crate::worker::{Worker, actions};

/// Last tick of the service's clock.
pub(crate) const TICKS: u8 = 2;
/// Tick at which the first version is due; it is not due at the start.
pub(crate) const DUE: u8 = 1;
/// A tick that is never reached.
pub(crate) const LATER: u8 = 9;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Deletes the source whatever its version.
    DeletesUnconditionally,
    /// Decides what is due by a clock that is ahead.
    DecidesByItsOwnClock,
    /// Treats a started copy as complete.
    DeletesUnverified,
    /// Mistakes any complete copy at the destination for one of its own version.
    TakesAnyCopy,
    /// Writes the state document whatever its version.
    WritesStateUnconditionally,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    pub(crate) etag: u8,
    pub(crate) due: u8,
    /// Whether it is to be kept elsewhere.
    pub(crate) kept: bool,
    pub(crate) content: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CopyState {
    Pending,
    Whole,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Copy {
    pub(crate) etag: u8,
    /// Source version according to its metadata.
    pub(crate) of: Version,
    pub(crate) content: u8,
    pub(crate) state: CopyState,
}

/// The state document, compared by the fields that distinguish states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doc(pub(crate) Arc<Document>);

impl Hash for Doc {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let document = &self.0;
        (document.cycle, document.fence, &document.writer).hash(state);
        document.next_due.map(Timestamp::ticks).hash(state);
        for container in &document.containers {
            (container.status.name(), container.order).hash(state);
            (container.tally.deleted, container.tally.moved).hash(state);
            for page in &container.pages {
                let deadline = page.deadline.map(Timestamp::ticks);
                (&page.id, page.fence, page.attempt, deadline).hash(state);
            }
        }
    }
}

/// Violations that the service has observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Wrongs {
    pub(crate) deleted_too_early: bool,
    pub(crate) deleted_without_copy: bool,
    pub(crate) state_branched: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) now: u8,
    pub(crate) blob: Option<Version>,
    /// The newest ETag of the blob.
    pub(crate) etag: u8,
    /// Copies by the version in their name; 0 is the name without a version.
    pub(crate) copies: BTreeMap<u8, Copy>,
    pub(crate) document: Doc,
    pub(crate) document_etag: u8,
    pub(crate) workers: [Worker; 2],
    pub(crate) owner: u8,
    pub(crate) losses: u8,
    pub(crate) wrongs: Wrongs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OwnerAction {
    /// Writes the same content with a later due time.
    Extends,
    /// Writes new content with the due time of the first version, to be kept elsewhere.
    Overwrites,
    Deletes,
}

/// The result of a worker's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallResult {
    Arrives,
    /// The service executed the call, but the response is lost.
    LostAfter,
    /// The call was not executed and gets no response.
    LostBefore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Tick,
    OwnerAction(OwnerAction),
    CopyEnds { slot: u8, whole: bool },
    Worker(usize, CallResult),
}

/// The model, with or without a mistake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Small {
    pub(crate) mistake: Option<Mistake>,
    pub(crate) owner: u8,
    pub(crate) losses: u8,
}

impl Small {
    pub(crate) fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }
}

impl Model for Small {
    type State = World;
    type Action = Action;

    /// Two worlds: one with a blob to delete, one with a blob to keep elsewhere.
    fn init_states(&self) -> Vec<World> {
        let container = Container {
            name: "c".to_owned(),
            ..Container::default()
        };
        let document = Document {
            version: 2,
            containers: vec![container],
            ..Document::default()
        };
        let world = |kept| World {
            now: 0,
            blob: Some(Version {
                etag: 1,
                due: DUE,
                kept,
                content: 1,
            }),
            etag: 1,
            copies: BTreeMap::new(),
            document: Doc(Arc::new(document.clone())),
            document_etag: 0,
            workers: [Worker::new("a"), Worker::new("b")],
            owner: self.owner,
            losses: self.losses,
            wrongs: Wrongs::default(),
        };
        vec![world(false), world(true)]
    }

    fn actions(&self, world: &World, all: &mut Vec<Action>) {
        if world.now < TICKS {
            all.push(Action::Tick);
        }
        if world.owner > 0 {
            let may = [
                OwnerAction::Extends,
                OwnerAction::Overwrites,
                OwnerAction::Deletes,
            ];
            all.extend(may.map(Action::OwnerAction));
        }
        for (slot, copy) in &world.copies {
            if copy.state == CopyState::Pending {
                let ends = |whole| Action::CopyEnds { slot: *slot, whole };
                all.extend([true, false].map(ends));
            }
        }
        for (at, worker) in world.workers.iter().enumerate() {
            let answers = actions(worker, world.losses > 0);
            all.extend(answers.iter().map(|answer| Action::Worker(at, *answer)));
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        match action {
            Action::Tick => world.now += 1,
            Action::OwnerAction(owner) => world.owner(owner)?,
            Action::CopyEnds { slot, whole } => world.copy_ends(slot, whole)?,
            Action::Worker(at, answer) => world.step(self, at, answer)?,
        }
        (world != *last).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
