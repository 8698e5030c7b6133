//! The plan of a sweeper's run.

use proptest::prelude::*;
use smalt::faults::{Fault as Served, Hold, Rule};
use smalt_protocol::Timestamp;
use smalt_sweeper::{Collision, StateBackend};

use super::extras::{Extras, extras};
use crate::scenario::faults::{self, Fault, Menu, Operation};
use crate::scenario::world::{self, Trouble, Which};

/// Length of every blob of a run; the first bytes say what it is.
pub const CONTENT_BYTES: u64 = 32;
/// Container for dead blobs.
pub(super) const DEAD: &str = "dbc";
/// Time in seconds after which leases, page deadlines and container back-offs have all ended.
const SETTLE_S: u64 = 1_300;
/// Number of sweeps after the trouble in which the fleet must remove everything that is due: the
/// one under way, and a complete one.
const SWEEPS_TO_CONVERGE: u64 = 2;

/// The targets of the sweep: account, container, prefix.
pub(super) const SWEPT: [(Which, &str, &str); 4] = [
    (Which::Main, "events", ""),
    (Which::Main, "logs", "app/"),
    (Which::Main, "media", ""),
    (Which::Dead, "retained", ""),
];
/// Index of the target whose container may be missing.
pub(super) const MEDIA: usize = 2;
/// Largest number of a request that a fault may be aimed at.
pub(super) const REQUESTS_MAX: u16 = 110;
/// Most acts of the owner in one plan.
const ACTS_MAX: u8 = 5;
/// Faults on the wire.
const MENU: Menu = Menu {
    aims: &[
        (Operation::Any, "", REQUESTS_MAX),
        (Operation::Change, "", 14),
        (Operation::Delete, "", 6),
        (Operation::Copy, "", 4),
        (Operation::Copy, "", 2),
        (Operation::Head, "", 4),
        (Operation::List, "", 16),
        (Operation::Get, "/state/", 30),
        (Operation::Put, "/state/", 20),
        (Operation::Put, "/state/", 8),
        (Operation::Lease, "", 40),
    ],
    acts: ACTS_MAX,
    // Several leases and page deadlines.
    late_s: 300,
    most: 20,
};
/// Operations of the blob service that fault rules may fail.
const OPERATIONS: [&str; 8] = [
    "Container_ListBlobFlatSegment",
    "Container_Create",
    "Blob_Delete",
    "Blob_StartCopyFromURL",
    "Blob_GetProperties",
    "Blob_Download",
    "BlockBlob_Upload",
    "Blob_AcquireLease",
];

/// The expiry of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// No `TimeToLive`.
    Untagged,
    /// Expired two hours ago.
    Past,
    /// Expires exactly now.
    Now,
    /// Expires in this many seconds.
    In(u32),
    /// Expires in this many seconds, written in another time zone.
    InElsewhere(u32),
    /// Expires two days after its last change.
    AfterChange,
    /// Expires this many seconds after the second mark at which a cycle begins; negative for
    /// before.
    AtMark(i16),
    /// Expires in ten years.
    Far,
    /// Has an invalid value.
    Invalid(u8),
}

/// Values that look like times but are invalid.
const INVALID: [&str; 5] = [
    "nonsense",
    "2026-11-20",
    "21.11.2026 10:00:00",
    "2026-11-20T10:00:00",
    "P1M",
];

impl Life {
    /// Returns the value of `TimeToLive`.
    pub fn text(self, now: Timestamp, every_s: u64) -> Option<String> {
        let in_s = |seconds: u32| now.floor_s().plus_s(u64::from(seconds));
        match self {
            Life::Untagged => None,
            Life::Past => Some(now.minus(std::time::Duration::from_secs(7_200)).iso_s()),
            Life::Now => Some(now.floor_s().iso_s()),
            Life::In(seconds) => Some(in_s(seconds).iso_s()),
            Life::InElsewhere(seconds) => {
                let shown = in_s(seconds).plus_s(5_400).iso_s();
                Some(shown.replace('Z', "+01:30"))
            }
            Life::AtMark(offset_s) => {
                let mark = Timestamp::from_unix_s((now.unix_s() / every_s + 2) * every_s);
                let by = std::time::Duration::from_secs(offset_s.unsigned_abs().into());
                let due = if offset_s < 0 {
                    mark.minus(by)
                } else {
                    mark.plus(by)
                };
                Some(due.iso_s())
            }
            Life::AfterChange => Some("P2D".to_owned()),
            Life::Far => Some(in_s(10 * 365 * 86_400).iso_s()),
            Life::Invalid(which) => Some(INVALID[usize::from(which) % INVALID.len()].to_owned()),
        }
    }
}

/// The destination of a dead blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dead {
    /// No destination: the blob is deleted.
    Unsaid,
    /// `dbc`: its own name in that container.
    Container,
    /// `dbc/old/`: its own name with a prefix.
    Prefix,
    /// `dbc/one`: exactly that name, which several blobs share.
    Exact,
    /// An invalid container name.
    Invalid,
    /// A place that is swept as well.
    Swept,
    /// Its own container: the blob itself, where that account also takes the dead blobs.
    Own,
}

impl Dead {
    /// Returns the value of `DeadBlobContainer`.
    pub fn text(self, names: &Names, own: &str) -> Option<String> {
        let dbc = names.container(DEAD);
        Some(match self {
            Dead::Unsaid => return None,
            Dead::Container => dbc,
            Dead::Prefix => format!("{dbc}/old/"),
            Dead::Exact => format!("{dbc}/one"),
            Dead::Invalid => "UPPER_case".to_owned(),
            Dead::Swept => names.container("retained"),
            Dead::Own => own.to_owned(),
        })
    }
}

/// The plan of one blob.
#[derive(Clone, Copy, Debug)]
pub struct BlobPlan {
    /// Index into `SWEPT`.
    pub container: u8,
    /// Its expiry.
    pub life: Life,
    /// Its destination when it is dead.
    pub dead: Dead,
}

/// An act of an owner.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    /// Overwrites the blob.
    Overwrite(Life, Dead),
    /// Replaces only its metadata.
    Tag(Life, Dead),
    /// Leases it for this many seconds.
    Lease(u32),
    /// Deletes it.
    Delete,
    /// Puts another blob at the destination of the dead one.
    TakeDestination,
    /// Truncates the blob at the destination, and keeps its metadata.
    SpoilDestination,
    /// Sets or removes the index tag of the rule, which changes no ETag.
    Retag(bool),
    /// Takes a snapshot.
    Snapshot,
    /// Breaks the lease on the state document, as an operator may.
    BreakLease,
    /// Deletes the container for dead blobs of the main account.
    DropDead,
}

/// One act of the owner.
#[derive(Clone, Copy, Debug)]
pub struct OwnerAct {
    /// Number of the blob.
    pub blob: u8,
    /// The act.
    pub deed: Deed,
}

/// The plan of a complete run.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    /// Seed of the service and the workers.
    pub seed: u64,
    /// Blobs of the owners.
    pub blobs: Vec<BlobPlan>,
    /// Acts that mishaps of the owner refer to by index.
    pub acts: Vec<OwnerAct>,
    /// Number of workers.
    pub workers: u8,
    /// Seconds by which the clock of each worker but the first is ahead.
    pub skews_s: Vec<i32>,
    /// Whether the workers check their own clocks.
    pub wall_clocks: bool,
    /// Hours between two cycles.
    pub every_h: u16,
    /// Blobs per page.
    pub page_size: u32,
    /// Blobs that a worker handles at the same time.
    pub parallelism: usize,
    /// How the workers share the state.
    pub backend: StateBackend,
    /// The account for dead blobs; `None` where there is none.
    pub dead_account: Option<Which>,
    /// Grace period in hours.
    pub grace_h: u64,
    /// Most removals of one cycle; 0 for no limit.
    pub removals_max: u64,
    /// Whether snapshots are deleted with their blob.
    pub with_snapshots: bool,
    /// Whether the container `media` is missing.
    pub media_is_missing: bool,
    /// Length of the lease in seconds.
    pub lease_s: u32,
    /// Policy for a destination that is taken.
    pub on_collision: Collision,
    /// Whether a week of trouble precedes the quiet cycles.
    pub lasts: bool,
    /// Faults.
    pub trouble: Trouble,
    /// Circumstances of some runs.
    pub extras: Extras,
}

impl SweepPlan {
    /// Returns the plan of two workers, pages of blobs to delete and to move, and one fault.
    pub fn of_fault(fault: Fault) -> Self {
        let deads = [Dead::Unsaid, Dead::Container, Dead::Prefix, Dead::Unsaid];
        let blob = |(number, dead): (u8, &Dead)| BlobPlan {
            container: number / 8,
            life: Life::Past,
            dead: *dead,
        };
        let (faults, rules) = (vec![fault], Vec::new());
        SweepPlan {
            seed: 1,
            blobs: (0..12).zip(deads.iter().cycle()).map(blob).collect(),
            acts: Vec::new(),
            workers: 2,
            skews_s: Vec::new(),
            wall_clocks: false,
            every_h: 40,
            page_size: 4,
            parallelism: 1,
            backend: StateBackend::Lease,
            dead_account: Some(Which::Dead),
            grace_h: 0,
            removals_max: 0,
            with_snapshots: false,
            media_is_missing: false,
            lease_s: 30,
            on_collision: Collision::Fail,
            lasts: true,
            trouble: Trouble { faults, rules },
            extras: Extras::default(),
        }
    }

    /// Returns the seconds between two marks.
    pub fn every_s(&self) -> u64 {
        3_600 * u64::from(self.every_h)
    }

    /// Returns the seconds by which the clock of a worker is ahead.
    pub fn skew_s(&self, worker: u8) -> i32 {
        let at = usize::from(worker).checked_sub(1);
        at.and_then(|at| self.skews_s.get(at)).copied().unwrap_or(0)
    }

    /// Returns the index into [`SWEPT`] of a blob's container.
    pub(super) fn container(&self, number: usize) -> usize {
        match usize::from(self.blobs[number].container) % SWEPT.len() {
            MEDIA if self.media_is_missing => 0,
            other => other,
        }
    }

    /// Returns the name of a blob; some names are outside the swept prefix.
    pub fn blob_name(&self, number: usize) -> String {
        match (self.container(number), number % 5) {
            (1, 4) => format!("other/b{number:02}"),
            (1, _) => format!("app/b{number:02}"),
            (_, 3) => format!("deep/er/b {number:02}"),
            _ => format!("b{number:02}"),
        }
    }
}

fn lives() -> impl Strategy<Value = Life> {
    prop_oneof![
        3 => Just(Life::Past),
        1 => Just(Life::Now),
        2 => Just(Life::Untagged),
        3 => (1u32..700_000).prop_map(Life::In),
        3 => (-200i16..500).prop_map(Life::AtMark),
        1 => (1u32..700_000).prop_map(Life::InElsewhere),
        1 => Just(Life::AfterChange),
        1 => Just(Life::Far),
        1 => (0u8..5).prop_map(Life::Invalid),
    ]
}

fn deads() -> impl Strategy<Value = Dead> {
    prop_oneof![
        5 => Just(Dead::Unsaid),
        3 => Just(Dead::Container),
        2 => Just(Dead::Prefix),
        1 => Just(Dead::Exact),
        1 => Just(Dead::Invalid),
        1 => Just(Dead::Swept),
        1 => Just(Dead::Own),
    ]
}

fn acts() -> impl Strategy<Value = Vec<OwnerAct>> {
    let deed = prop_oneof![
        3 => (lives(), deads()).prop_map(|(life, dead)| Deed::Overwrite(life, dead)),
        3 => (lives(), deads()).prop_map(|(life, dead)| Deed::Tag(life, dead)),
        1 => (15u32..60).prop_map(Deed::Lease),
        1 => Just(Deed::Delete),
        1 => Just(Deed::TakeDestination),
        2 => Just(Deed::SpoilDestination),
        2 => Just(Deed::Snapshot),
        2 => Just(Deed::BreakLease),
    ];
    let act = (any::<u8>(), deed).prop_map(|(blob, deed)| OwnerAct { blob, deed });
    proptest::collection::vec(act, 1..=usize::from(ACTS_MAX))
}

/// Generates a rule that makes copies pend for a while and then succeed or fail.
fn pending_copies() -> impl Strategy<Value = Option<Rule>> {
    let hold = (1u64..240, any::<bool>()).prop_map(|(seconds, fails)| Hold {
        duration_s: Some(seconds),
        failure: fails.then(|| "failed by plan".to_owned()),
        ..Hold::default()
    });
    let rule = (1u64..4, 1u64..3, hold).prop_map(|(nth, times, hold)| Rule {
        operation: "Blob_StartCopyFromURL".to_owned(),
        resource: String::new(),
        nth,
        times,
        fault: Served::PendingCopy(hold),
    });
    proptest::option::weighted(0.3, rule)
}

/// Generates all plans.
pub(super) fn plans() -> impl Strategy<Value = SweepPlan> {
    let blob = (0u8..4, lives(), deads());
    let blob = blob.prop_map(|(container, life, dead)| BlobPlan {
        container,
        life,
        dead,
    });
    let blobs = proptest::collection::vec(blob, 1..14);
    let rules = (world::rules(&OPERATIONS), pending_copies());
    let trouble = (faults::swarm(MENU), rules);
    let trouble = trouble.prop_map(|(faults, (mut rules, copies))| {
        rules.extend(copies);
        Trouble { faults, rules }
    });
    let shape = (2u8..6, 40u16..120, 1u32..8, 1usize..5);
    // The service accepts a signed date that is up to 15 minutes off.
    let skew = prop_oneof![1 => Just(0i32), 2 => -590i32..590, 1 => -890i32..890];
    let clocks = (proptest::collection::vec(skew, 4), any::<bool>());
    let backend = prop_oneof![2 => Just(StateBackend::Lease), 1 => Just(StateBackend::Etag)];
    let collision = prop_oneof![
        Just(Collision::Fail),
        Just(Collision::Suffix),
        Just(Collision::Overwrite)
    ];
    let dead = prop_oneof![
        5 => Just(Some(Which::Dead)),
        2 => Just(Some(Which::Main)),
        1 => Just(None)
    ];
    let grace = prop_oneof![3 => Just(0u64), 1 => 1u64..30];
    let limit = prop_oneof![3 => Just(0u64), 1 => 1u64..3];
    let rarely = || prop_oneof![5 => Just(false), 1 => Just(true)];
    let lease = prop_oneof![Just(15u32), Just(30), Just(60)];
    let more = (grace, limit, rarely(), rarely(), lease);
    let all = (
        any::<u64>(),
        blobs,
        acts(),
        shape,
        (backend, dead, collision, clocks, more),
        trouble,
    );
    let plan = all.prop_map(|(seed, blobs, acts, shape, policy, trouble)| SweepPlan {
        seed,
        blobs,
        acts,
        workers: shape.0,
        skews_s: policy.3.0,
        wall_clocks: policy.3.1,
        every_h: shape.1,
        page_size: shape.2,
        parallelism: shape.3,
        backend: policy.0,
        dead_account: policy.1,
        on_collision: policy.2,
        grace_h: policy.4.0,
        removals_max: policy.4.1,
        with_snapshots: policy.4.2,
        media_is_missing: policy.4.3,
        lease_s: policy.4.4,
        lasts: true,
        trouble,
        extras: Extras::default(),
    });
    (plan, extras()).prop_map(|(plan, extras)| extras.applied(plan))
}

/// Names of the containers of a run.
#[derive(Clone, Debug)]
pub struct Names {
    /// Prefix of every container name; empty in a service that only this run uses.
    pub prefix: String,
}

impl Names {
    /// Returns names for a service that only this run uses.
    pub fn fixed() -> Self {
        Names {
            prefix: String::new(),
        }
    }

    /// Returns the name of the container of the state document.
    pub fn state(&self) -> String {
        format!("{}state", self.prefix)
    }

    /// Returns the full name of a container.
    pub fn container(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// Returns the seconds that the fleet has, from the end of the trouble or from the time when a blob
/// is due.
pub(super) fn converges_s(plan: &SweepPlan) -> u64 {
    SWEEPS_TO_CONVERGE * plan.every_s() + SETTLE_S
}
