//! What makes a burst: everything in it follows from its plan.

use std::collections::BTreeSet;

use super::schedule::Order;

/// The client of the prelude, which is alone.
pub const SOLO: usize = 0;
/// Most clients of a burst.
pub const CLIENTS_MAX: usize = 6;
/// Fewest and most operations of a client, by turns.
pub const OPERATIONS: std::ops::RangeInclusive<usize> = 4..=8;
/// Operations before a burst on one partition, one at a time.
const PRELUDE: usize = 4;
/// The same of a burst on everything: more kinds of things have to be there.
const PRELUDE_OF_ALL: usize = 12;
/// Seeds of one kind that have clients and operations in common.
const TURN: u64 = 5;
/// Every other burst on blobs or entities has two partitions.
const TWO_EVERY: u64 = 2;

/// What a burst is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub enum Kind {
    /// One or two blobs: content, ETag, lease, metadata, index tags.
    Blob,
    /// One container: whether it is there, lease, metadata.
    Container,
    /// One queue: messages, visibility, receipts.
    Queue,
    /// Listings in pages while blobs come, change and go.
    Listing,
    /// Entities of one or two partitions: conditions, transactions, queries.
    Entity,
    /// Every operation on blobs and queues that the model knows, on one name of each kind.
    All,
}

impl Kind {
    /// All of them.
    pub const EACH: [Kind; 6] = [
        Kind::Blob,
        Kind::Container,
        Kind::Queue,
        Kind::Listing,
        Kind::Entity,
        Kind::All,
    ];

    /// As the command line names it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Blob => "blob",
            Kind::Container => "container",
            Kind::Queue => "queue",
            Kind::Listing => "listing",
            Kind::Entity => "entity",
            Kind::All => "all",
        }
    }
}

/// A burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Seed of what is asked.
    pub seed: u64,
    /// What it is about.
    pub kind: Kind,
    /// Clients at once.
    pub clients: usize,
    /// Operations of each.
    pub operations: usize,
    /// In which order things happen.
    pub order: Order,
    /// Operations that are left out: client, number. [`SOLO`] is the prelude.
    pub left_out: BTreeSet<(usize, usize)>,
}

impl Plan {
    /// The burst of a seed; what is given is not by turns.
    pub fn of(
        seed: u64,
        kind: Option<Kind>,
        clients: Option<usize>,
        operations: Option<usize>,
    ) -> Self {
        let mut turns = seed;
        let mut turn = |of: u64| {
            let at = turns % of;
            turns /= of;
            usize::try_from(at).unwrap_or(0)
        };
        // A kind that is given takes the seeds as they come.
        let of_kind = match kind {
            Some(_) => turn(TURN),
            None => turn(Kind::EACH.len() as u64),
        };
        let of_clients = turn(CLIENTS_MAX as u64 - 1);
        let of_operations = turn((OPERATIONS.end() - OPERATIONS.start()) as u64 + 1);
        Plan {
            seed,
            kind: kind.unwrap_or(Kind::EACH[of_kind]),
            clients: clients.unwrap_or(2 + of_clients),
            operations: operations.unwrap_or(OPERATIONS.start() + of_operations),
            order: Order::Seeded(seed),
            left_out: BTreeSet::new(),
        }
    }

    /// Operations before the burst, one at a time.
    pub fn prelude(&self) -> usize {
        match self.kind {
            Kind::All => PRELUDE_OF_ALL,
            _ => PRELUDE,
        }
    }

    /// How many blobs, or partitions of entities, a burst on them has.
    pub fn partitions(&self) -> usize {
        if self.seed.is_multiple_of(TWO_EVERY) {
            1
        } else {
            2
        }
    }

    /// Whether an operation is not left out.
    pub fn keeps(&self, client: usize, index: usize) -> bool {
        !self.left_out.contains(&(client, index))
    }

    /// The command that runs it again, as long as nothing is left out.
    pub fn command(&self) -> String {
        format!(
            "harness check bursts --seed {} --cases 1 --kind {} --clients {} --operations {}",
            self.seed,
            self.kind.name(),
            self.clients,
            self.operations
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_go_through_all_kinds_and_sizes() {
        let plans = (0..500).map(|seed| Plan::of(seed, None, None, None));
        let all: BTreeSet<_> = plans.map(|p| (p.kind, p.clients, p.operations)).collect();
        assert_eq!(all.len(), 6 * 5 * 5);
        assert!(all.iter().all(|(_, clients, operations)| {
            (2..=CLIENTS_MAX).contains(clients) && OPERATIONS.contains(operations)
        }));
        let same = Plan::of(3, Some(Kind::Queue), Some(2), Some(4));
        assert_eq!(
            (same.kind, same.clients, same.operations),
            (Kind::Queue, 2, 4)
        );
    }
}
