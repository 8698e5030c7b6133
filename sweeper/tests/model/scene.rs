//! The world: what there is, and what can happen next.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smalt_protocol::Timestamp;
use smalt_sweeper::state::{Container, Document};
use stateright::{Model, Property};

use crate::properties;
use crate::worker::{Worker, actions};

/// The service's clock stops here.
pub(crate) const TICKS: u8 = 2;
/// The first version is due at this tick: not at first.
pub(crate) const DUE: u8 = 1;
/// As good as never.
pub(crate) const LATER: u8 = 9;
/// Something done wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// The source is deleted whatever version it has by then.
    DeletesUnconditionally,
    /// What is due is decided by a clock that is ahead.
    DecidesByItsOwnClock,
    /// A copy that was begun counts as made.
    DeletesUnverified,
    /// Whatever whole copy stands at the destination is taken for that of the own version.
    TakesAnyCopy,
    /// The state document is written whatever version it has by then.
    WritesStateUnconditionally,
}

/// A version of the blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    pub(crate) etag: u8,
    /// When its time is over.
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

/// A copy among the dead blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Copy {
    /// Its own version.
    pub(crate) etag: u8,
    /// The version that it says it was made from.
    pub(crate) of: Version,
    pub(crate) content: u8,
    pub(crate) state: CopyState,
}

/// The state document with what tells states apart.
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

/// What went wrong, noted where the service saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Wrongs {
    pub(crate) deleted_too_early: bool,
    pub(crate) deleted_without_copy: bool,
    pub(crate) state_branched: bool,
}

/// One state of everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) now: u8,
    pub(crate) blob: Option<Version>,
    /// The newest ETag of the blob.
    pub(crate) etag: u8,
    /// By the version in the name; 0 is the plain name.
    pub(crate) copies: BTreeMap<u8, Copy>,
    pub(crate) document: Doc,
    /// The document's ETag.
    pub(crate) document_etag: u8,
    pub(crate) workers: [Worker; 2],
    pub(crate) owner: u8,
    pub(crate) losses: u8,
    pub(crate) wrongs: Wrongs,
}

/// What the owner of the blob does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// Same content, later time.
    Extends,
    /// New content that is due as the first was, and is to be kept elsewhere.
    Overwrites,
    Deletes,
}

/// What becomes of a call of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Arrives,
    /// The service did what was asked, and the answer is lost.
    LostAfter,
    /// Nothing was done, and no answer comes.
    LostBefore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Tick,
    Owner(Owner),
    CopyEnds { slot: u8, whole: bool },
    Worker(usize, Answer),
}

/// The model, with a mistake or without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Small {
    pub(crate) mistake: Option<Mistake>,
    /// What the owner does, at most.
    pub(crate) owner: u8,
    /// Answers that are lost, at most.
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

    /// A blob that is to be deleted, and one that is to be kept elsewhere.
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
            let may = [Owner::Extends, Owner::Overwrites, Owner::Deletes];
            all.extend(may.map(Action::Owner));
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
            Action::Owner(owner) => world.owner(owner)?,
            Action::CopyEnds { slot, whole } => world.copy_ends(slot, whole)?,
            Action::Worker(at, answer) => world.step(self, at, answer)?,
        }
        (world != *last).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
