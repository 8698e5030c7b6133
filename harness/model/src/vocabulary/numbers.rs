//! What the service makes up, as numbers.

/// An ETag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// A lease id. Those below [`PROPOSED_LEASES`] are the client's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u32);

/// How many lease ids clients propose.
pub const PROPOSED_LEASES: u32 = 3;

/// Time of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u32);

/// A message id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u32);

/// A pop receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt(pub u32);

/// The next number of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Numbers {
    /// Tags made.
    pub tags: u32,
    /// Lease ids made, beside those proposed.
    pub leases: u32,
    /// Snapshots taken.
    pub moments: u32,
    /// Messages put.
    pub messages: u32,
    /// Receipts given out.
    pub receipts: u32,
    /// Places in orders of delivery.
    pub places: u64,
}

impl Numbers {
    /// The next tag, lease id, message and receipt have this number, the next snapshot has at least
    /// this one.
    pub fn start_at(&mut self, first: u32) {
        self.moments = self.moments.max(first);
        self.tags = first;
        self.leases = first;
        self.messages = first;
        self.receipts = first;
    }

    /// A new tag.
    pub fn tag(&mut self) -> Tag {
        self.tags += 1;
        Tag(self.tags - 1)
    }

    /// A lease id of the service's own.
    pub fn lease(&mut self) -> LeaseId {
        self.leases += 1;
        LeaseId(PROPOSED_LEASES + self.leases - 1)
    }

    /// The time of a new snapshot.
    pub fn moment(&mut self) -> Moment {
        self.moments += 1;
        Moment(self.moments - 1)
    }

    /// A new message.
    pub fn message(&mut self) -> MessageId {
        self.messages += 1;
        MessageId(self.messages - 1)
    }

    /// A new receipt.
    pub fn receipt(&mut self) -> Receipt {
        self.receipts += 1;
        Receipt(self.receipts - 1)
    }

    /// A place behind all others.
    pub fn place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }
}
