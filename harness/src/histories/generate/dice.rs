//! Random bytes, taken one after the other, and what they are to be used for.

use smalt_model::hints::{Alone, Standing};
use smalt_model::outcomes::Header;
use smalt_protocol::ErrorCode;

use super::Space;

/// Bytes that one choice may take.
pub const DICE: usize = 32;

/// How an operation misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// No lease id, a wrong one, one that is no more.
    Lease,
    /// A condition that does not hold.
    Condition,
    /// A container, blob or queue that is not there.
    Absent,
    /// A blob of another type.
    Kind,
    /// What is special to the operation: a range past the end, an expired receipt, ...
    Detail,
}

impl Miss {
    /// All of them.
    pub const ALL: [Miss; 5] = [
        Miss::Detail,
        Miss::Lease,
        Miss::Condition,
        Miss::Absent,
        Miss::Kind,
    ];

    /// The one that leads to an error code.
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
            | E::UnsatisfiableCondition => Miss::Condition,
            E::ContainerNotFound | E::BlobNotFound | E::QueueNotFound => Miss::Absent,
            E::InvalidBlobType => Miss::Kind,
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
    /// Other bytes out of the same ones, unless it is zero.
    salt: u8,
    /// What the history is about.
    pub space: Space,
    /// How the operation is to miss; absent: it is to be done.
    pub miss: Option<Miss>,
    /// The condition that it is to carry; absent: any.
    pub header: Option<Header>,
    /// The code that it is to be refused with; absent: any.
    pub code: Option<ErrorCode>,
    /// The blocks that are to stand alone where it goes; absent: anything.
    pub alone: Option<Alone>,
}

impl<'a> Dice<'a> {
    /// Dice of these bytes.
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

    /// What was not taken yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next byte; zero behind the last.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        if self.salt == 0 {
            return *first;
        }
        // A bijection for each place and salt: as random as the byte itself.
        let place = u8::try_from(rest.len() % 256).unwrap_or(0);
        let step = place
            .wrapping_mul(59)
            .wrapping_add(self.salt.wrapping_mul(101));
        first.wrapping_add(step).rotate_left(u32::from(self.salt))
    }

    /// A number below this one.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    /// A number below this one, which may be larger than a byte.
    pub fn wide_below(&mut self, end: u16) -> u16 {
        let number = u32::from(self.byte()) + 256 * u32::from(self.byte());
        u16::try_from(number * u32::from(end) / 65_536).unwrap_or(0)
    }

    /// A number below a hundred.
    pub fn percent(&mut self) -> u8 {
        u8::try_from(u16::from(self.byte()) * 100 / 256).unwrap_or(0)
    }

    /// One of these.
    pub fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let place = self.below(of.len());
        of.get(place).cloned()
    }

    /// True in about so many of a hundred.
    pub fn chance(&mut self, percent: u8) -> bool {
        // High bytes are the chance, so that zero is the simple side.
        u16::from(self.byte()) * 100 >= (100 - u16::from(percent)) * 256
    }

    /// Whether a lease that stands so can lead to the code that is wanted.
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

    /// Whether the operation is to miss this way.
    pub fn misses(&self, how: Miss) -> bool {
        self.miss == Some(how)
    }
}
