//! Random bytes, taken in sequence, and what they are used for.

use smalt_model::hints::{Alone, Standing};
use smalt_model::outcomes::Header;
use smalt_protocol::ErrorCode;

use super::space::Space;

/// Number of bytes that one choice may take.
pub const DICE: usize = 32;
/// Number of bytes that a choice of an operation on tables may take: a transaction of four changes.
pub const TABLE_DICE: usize = 96;

/// Percentage of texts, contents and properties that are long, without a theme.
const LONG_PERCENT: u8 = 12;

/// The mistake in a near miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// No lease id, a wrong one, or one that is no longer valid.
    Lease,
    /// A condition that does not hold.
    Condition,
    /// A container, blob or queue that does not exist.
    Absent,
    /// A blob of another type.
    Kind,
    /// A mistake specific to the operation: a range past the end, an expired receipt, ...
    Detail,
}

impl Miss {
    /// All mistakes.
    pub const ALL: [Miss; 5] = [
        Miss::Detail,
        Miss::Lease,
        Miss::Condition,
        Miss::Absent,
        Miss::Kind,
    ];

    /// Returns the mistake that leads to an error code.
    pub fn of(code: ErrorCode) -> Self {
        use ErrorCode as E;
        match code {
            E::LeaseIdMissing
            | E::LeaseLost
            | E::LeaseNotPresentWithBlobOperation
            | E::LeaseIdMismatchWithBlobOperation
            | E::LeaseNotPresentWithContainerOperation
            | E::LeaseIdMismatchWithContainerOperation => Miss::Lease,
            E::ConditionNotMet
            | E::TargetConditionNotMet
            | E::BlobAlreadyExists
            | E::UpdateConditionNotSatisfied
            | E::UnsatisfiableCondition => Miss::Condition,
            E::ContainerNotFound
            | E::BlobNotFound
            | E::QueueNotFound
            | E::TableNotFound
            | E::ResourceNotFound => Miss::Absent,
            E::InvalidBlobType
            | E::CommandsInBatchActOnDifferentPartitions
            | E::InvalidDuplicateRow => Miss::Kind,
            E::LeaseIsBreakingAndCannotBeAcquired
            | E::LeaseIsBreakingAndCannotBeChanged
            | E::LeaseIsBrokenAndCannotBeRenewed => Miss::Detail,
            E::LeaseAlreadyPresent | E::LeaseIdMismatchWithLeaseOperation => Miss::Lease,
            _ => Miss::Detail,
        }
    }
}

/// Random bytes for one operation.
pub struct Dice<'a> {
    bytes: &'a [u8],
    /// Derives other bytes from the same input, unless it is zero.
    salt: u8,
    /// The names and operations of the history.
    pub space: Space,
    /// The intended mistake; `None` when the operation should succeed.
    pub miss: Option<Miss>,
    /// The condition header to use; `None` for any.
    pub header: Option<Header>,
    /// The intended error code; `None` for any.
    pub code: Option<ErrorCode>,
    /// The kind of uncommitted blocks that the blob should have; `None` for any blob.
    pub alone: Option<Alone>,
}

impl<'a> Dice<'a> {
    /// Returns dice with these bytes.
    pub fn new(bytes: &'a [u8], space: Space, salt: u8) -> Self {
        Dice {
            bytes,
            salt,
            space,
            miss: None,
            header: None,
            code: None,
            alone: None,
        }
    }

    /// Returns the bytes that were not taken yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Takes the next byte; zero after the last.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        if self.salt == 0 {
            return *first;
        }
        // A bijection for each position and salt, so as random as the byte itself.
        let place = u8::try_from(rest.len() % 256).unwrap_or(0);
        let step = place
            .wrapping_mul(59)
            .wrapping_add(self.salt.wrapping_mul(101));
        first.wrapping_add(step).rotate_left(u32::from(self.salt))
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    /// Returns a number below `end`, which may exceed a byte.
    pub fn wide_below(&mut self, end: u16) -> u16 {
        let number = u32::from(self.byte()) + 256 * u32::from(self.byte());
        u16::try_from(number * u32::from(end) / 65_536).unwrap_or(0)
    }

    /// Returns a number below 100.
    pub fn percent(&mut self) -> u8 {
        u8::try_from(u16::from(self.byte()) * 100 / 256).unwrap_or(0)
    }

    /// Picks one of these.
    pub fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let place = self.below(of.len());
        of.get(place).cloned()
    }

    /// Returns true with about this probability in percent.
    pub fn chance(&mut self, percent: u8) -> bool {
        // High bytes give true, so that zero gives the simple choice.
        u16::from(self.byte()) * 100 >= (100 - u16::from(percent)) * 256
    }

    /// Whether a lease in this state can lead to the wanted error code.
    pub fn suits(&self, lease: Standing) -> bool {
        use ErrorCode as E;
        use Standing as S;
        let Some(code) = self.code else { return true };
        match code {
            E::LeaseIdMissing | E::LeaseAlreadyPresent => matches!(lease, S::Held | S::Breaking),
            E::LeaseIdMismatchWithBlobOperation => lease != S::Free,
            E::InfiniteLeaseDurationRequired => lease == S::Held,
            E::LeaseIsBreakingAndCannotBeAcquired | E::LeaseIsBreakingAndCannotBeChanged => {
                lease == S::Breaking
            }
            E::LeaseIsBrokenAndCannotBeRenewed => matches!(lease, S::Breaking | S::Broken),
            E::LeaseLost => matches!(lease, S::Broken | S::Expired),
            E::LeaseNotPresentWithBlobOperation => lease == S::Free,
            _ => true,
        }
    }

    /// Whether a text, a content or a property should be so long that the service stores it in
    /// another way.
    pub fn is_long(&mut self) -> bool {
        let percent = self.space.theme.map_or(LONG_PERCENT, |it| it.long_percent);
        self.space.wide && self.chance(percent)
    }

    /// Whether the operation should have this mistake.
    pub fn misses(&self, how: Miss) -> bool {
        self.miss == Some(how)
    }
}
