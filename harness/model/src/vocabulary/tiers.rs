//! Access tiers.

/// An access tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// `Hot`, the default of the account.
    Hot,
    /// `Cool`.
    Cool,
    /// `Archive`.
    Archive,
}

/// `x-ms-rehydrate-priority`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// `Standard`: up to 15 hours.
    Standard,
    /// `High`: up to one hour.
    High,
}

impl Tier {
    /// Returns the name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Hot => "Hot",
            Tier::Cool => "Cool",
            Tier::Archive => "Archive",
        }
    }
}

impl Priority {
    /// Returns the name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Priority::Standard => "Standard",
            Priority::High => "High",
        }
    }
}
