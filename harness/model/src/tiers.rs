//! Access tiers and rehydration. Sources: "Set Blob Tier", "Blob rehydration from the archive
//! tier".

use smalt_protocol::{ErrorCode, Timestamp};

use crate::expected::{Answer, Expected, Fact, Refusal};
use crate::vocabulary::{Priority, Tier};

/// The longest rehydration at each priority, in seconds.
const STANDARD_S: u64 = 15 * 60 * 60;
const HIGH_S: u64 = 60 * 60;

/// The tier of a blob, and the rehydration that changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tiered {
    /// The tier; `None` until it is set.
    pub tier: Option<Tier>,
    /// When the tier changed, in seconds of the Unix epoch.
    pub changed_s: Option<u64>,
    /// The rehydration of an archived blob.
    pub waking: Option<Waking>,
}

/// A rehydration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waking {
    /// The tier afterwards.
    pub to: Tier,
    /// The priority, which can only be raised.
    pub priority: Priority,
    /// Whether the priority was raised.
    pub is_raised: bool,
    /// The start, in seconds of the Unix epoch.
    pub since_s: u64,
}

impl Waking {
    /// Returns the end, in seconds of the Unix epoch.
    pub fn end_s(self) -> u64 {
        self.since_s
            + match self.priority {
                Priority::Standard => STANDARD_S,
                Priority::High => HIGH_S,
            }
    }
}

impl Tiered {
    /// Returns the tier at this time.
    #[must_use]
    pub fn at(self, now_s: u64) -> Self {
        match self.waking {
            Some(waking) if waking.end_s() <= now_s => Tiered {
                tier: Some(waking.to),
                changed_s: Some(waking.end_s()),
                waking: None,
            },
            _ => self,
        }
    }

    /// Checks that the content is readable.
    pub(crate) fn check_online(self, now_s: u64) -> Result<(), Refusal> {
        let tiered = self.at(now_s);
        match (tiered.waking, tiered.tier) {
            (Some(_), _) => Err(ErrorCode::BlobBeingRehydrated.into()),
            (None, Some(Tier::Archive)) => Err(ErrorCode::BlobArchived.into()),
            _ => Ok(()),
        }
    }

    /// Returns the headers of Get Blob Properties.
    pub(crate) fn shown(self, now_s: u64) -> [Fact; 5] {
        let tiered = self.at(now_s);
        let tier = tiered.tier.unwrap_or(Tier::Hot).name();
        let inferred = tiered.tier.is_none().then_some("true");
        let changed = tiered
            .changed_s
            .map(|s| Timestamp::from_unix_s(s).rfc1123());
        let status = tiered.waking.map(|waking| match waking.to {
            Tier::Hot => "rehydrate-pending-to-hot",
            Tier::Cool => "rehydrate-pending-to-cool",
            Tier::Archive => "",
        });
        let priority = tiered.waking.map(|waking| waking.priority.name());
        let text = |text: &str| text.to_owned();
        [
            Fact::Header("x-ms-access-tier", Some(text(tier))),
            Fact::Header("x-ms-access-tier-inferred", inferred.map(text)),
            Fact::Header("x-ms-access-tier-change-time", changed),
            Fact::Header("x-ms-archive-status", status.map(text)),
            Fact::Header("x-ms-rehydrate-priority", priority.map(text)),
        ]
    }

    /// Set Blob Tier. "The rehydration priority setting cannot be lowered from High to Standard for
    /// a pending operation."
    pub(crate) fn set(&mut self, to: Tier, given: Option<Priority>, now_s: u64) -> Answer {
        let given = given.unwrap_or(Priority::Standard);
        *self = self.at(now_s);
        match &mut self.waking {
            Some(waking) if waking.to != to => return Err(ErrorCode::BlobBeingRehydrated.into()),
            Some(waking) => {
                waking.is_raised |= given > waking.priority;
                waking.priority = given.max(waking.priority);
                return Ok(Expected::ok(202));
            }
            None => {}
        }
        if self.tier == Some(Tier::Archive) && to != Tier::Archive {
            self.waking = Some(Waking {
                to,
                priority: given,
                is_raised: false,
                since_s: now_s,
            });
            return Ok(Expected::ok(202));
        }
        self.tier = Some(to);
        self.changed_s = Some(now_s);
        Ok(Expected::ok(200))
    }
}
