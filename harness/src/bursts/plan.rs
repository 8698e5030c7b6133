//! The parameters of a burst, which determine everything in it.

use std::collections::BTreeSet;

use super::schedule::Order;

/// The only client of the prelude.
pub const SOLO: usize = 0;
/// Largest number of clients in a burst.
pub const CLIENTS_MAX: usize = 6;
/// Numbers of operations per client, used in turn.
pub const OPERATIONS: std::ops::RangeInclusive<usize> = 4..=8;
/// Number of operations in the prelude of a burst on one partition.
const PRELUDE: usize = 4;
/// Number of operations in the prelude of a burst of [`Kind::All`], which needs more kinds of
/// entities.
const PRELUDE_OF_ALL: usize = 12;
/// Number of consecutive seeds of one kind with the same number of clients and operations.
const TURN: u64 = 5;
/// Every second burst on blobs or entities has two partitions.
const TWO_EVERY: u64 = 2;

/// The kind of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub enum Kind {
    /// One or two blobs: content, ETag, lease, metadata, index tags.
    Blob,
    /// One container: existence, lease, metadata.
    Container,
    /// One queue: messages, visibility, pop receipts.
    Queue,
    /// Paged listings while blobs are created, changed and deleted.
    Listing,
    /// Entities of one or two partitions: conditions, transactions, queries.
    Entity,
    /// One hierarchical container: files, directories and renames, through both interfaces.
    Lake,
    /// All operations on blobs and queues in the model, on one name of each kind.
    All,
}

impl Kind {
    /// All kinds.
    pub const EACH: [Kind; 7] = [
        Kind::Blob,
        Kind::Container,
        Kind::Queue,
        Kind::Listing,
        Kind::Entity,
        Kind::Lake,
        Kind::All,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Blob => "blob",
            Kind::Container => "container",
            Kind::Queue => "queue",
            Kind::Listing => "listing",
            Kind::Entity => "entity",
            Kind::Lake => "lake",
            Kind::All => "all",
        }
    }
}

/// The parameters of a burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Seed of the operations.
    pub seed: u64,
    /// Kind of the burst.
    pub kind: Kind,
    /// Number of concurrent clients.
    pub clients: usize,
    /// Number of operations per client.
    pub operations: usize,
    /// Order of execution.
    pub order: Order,
    /// Operations to leave out, as client and index; [`SOLO`] is the prelude.
    pub left_out: BTreeSet<(usize, usize)>,
}

impl Plan {
    /// Returns the burst of a seed; parameters that are `None` change in turn.
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
        // With a given kind, consecutive seeds are all of that kind.
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

    /// Returns the number of operations before the burst.
    pub fn prelude(&self) -> usize {
        match self.kind {
            Kind::All => PRELUDE_OF_ALL,
            _ => PRELUDE,
        }
    }

    /// Returns the number of blobs, or of partitions of entities.
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

    /// Returns the command that runs the burst again without leaving anything out.
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
    fn seeds_cover_all_kinds_and_sizes() {
        let plans = (0..500).map(|seed| Plan::of(seed, None, None, None));
        let all: BTreeSet<_> = plans.map(|p| (p.kind, p.clients, p.operations)).collect();
        assert_eq!(all.len(), 7 * 5 * 5);
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
