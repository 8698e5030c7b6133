//! Numbers that stand for values that the service makes up.

/// An ETag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// A lease id. Numbers below [`PROPOSED_LEASES`] are proposed by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u32);

/// Number of lease ids that clients propose.
pub const PROPOSED_LEASES: u32 = 3;

/// The time of a snapshot.
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
    /// Number of tags issued.
    pub tags: u32,
    /// Number of lease ids issued, besides those that clients propose.
    pub leases: u32,
    /// Number of snapshots taken.
    pub moments: u32,
    /// Number of messages put.
    pub messages: u32,
    /// Number of receipts issued.
    pub receipts: u32,
    /// Number of positions issued in orders of delivery.
    pub places: u64,
}

impl Numbers {
    /// Gives the next tag, lease id, message and receipt this number, and the next snapshot at
    /// least this number.
    pub fn start_at(&mut self, first: u32) {
        self.moments = self.moments.max(first);
        self.tags = first;
        self.leases = first;
        self.messages = first;
        self.receipts = first;
    }

    /// Issues a tag.
    pub fn tag(&mut self) -> Tag {
        self.tags += 1;
        Tag(self.tags - 1)
    }

    /// Issues a lease id of the service's own.
    pub fn lease(&mut self) -> LeaseId {
        self.leases += 1;
        LeaseId(PROPOSED_LEASES + self.leases - 1)
    }

    /// Issues the time of a new snapshot.
    pub fn moment(&mut self) -> Moment {
        self.moments += 1;
        Moment(self.moments - 1)
    }

    /// Issues a message id.
    pub fn message(&mut self) -> MessageId {
        self.messages += 1;
        MessageId(self.messages - 1)
    }

    /// Issues a receipt.
    pub fn receipt(&mut self) -> Receipt {
        self.receipts += 1;
        Receipt(self.receipts - 1)
    }

    /// Issues a position after all others.
    pub fn place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }
}
