//! Circumstances of some runs: clocks that drift, a rule by index tag, blobs without an MD5,
//! accounts with a hierarchical namespace, and a service that is busy.
//!
//! They are drawn after everything else, so that a seed keeps its plan.

use std::time::Duration;

use proptest::prelude::*;
use smalt_sweeper::decide::Rule;

use super::plan::{Deed, Life, Names, OwnerAct, REQUESTS_MAX, SWEPT, SweepPlan};
use crate::scenario::faults::{self, Aim, Fault, Mishap, Operation};
use crate::scenario::world::Which;

/// Key and value of the index tag of the rule.
pub(super) const TAG: (&str, &str) = ("kind", "temporary");
/// Acts of the owner that the faults refer to by index.
const DEEDS: [Deed; 3] = [
    Deed::SpoilDestination,
    Deed::Retag(false),
    Deed::Retag(true),
];
/// Index of the target that the rule is for.
pub(super) const RULED: usize = 0;

/// The circumstances of one run.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Whether the error of each clock turns into its opposite in the course of the trouble.
    pub drifts: bool,
    /// Hours after its last change at which a blob with the tag is due; `None` without a rule.
    pub rule_h: Option<u16>,
    /// Whether every second blob has no MD5.
    pub without_md5: bool,
    /// Whether the accounts have a hierarchical namespace, whose directories are due.
    pub hierarchical: bool,
    /// The number of the copy before which the owner deletes the container for dead blobs.
    drop_before: Option<u16>,
    /// Most requests per second of one worker; `None` without a limit.
    pub rate_per_s: Option<u32>,
    /// Whether the fleet has a budget, which no run uses up.
    pub has_budget: bool,
    /// Page size, and the number of the change before which a worker dies, where all blobs are in
    /// one container.
    crowd: Option<(u32, u16)>,
    /// The number of the request about a lease at which a worker is asked to stop.
    stop_at: Option<u16>,
    /// Faults that bring about what these circumstances are for.
    faults: Vec<Fault>,
}

impl Extras {
    /// Returns the rule, if there is one.
    pub(super) fn rule(&self, names: &Names) -> Option<Rule> {
        let age = Duration::from_secs(3_600 * u64::from(self.rule_h?));
        Some(Rule {
            container: names.container(SWEPT[RULED].1),
            older_than: age,
            tag: Some((TAG.0.to_owned(), TAG.1.to_owned())),
            ..Rule::default()
        })
    }

    /// Adds these circumstances to a plan.
    pub(super) fn applied(self, mut plan: SweepPlan) -> SweepPlan {
        if self.rule_h.is_some() {
            for blob in plan.blobs.iter_mut().step_by(2) {
                (blob.container, blob.life) = (0, Life::Untagged);
            }
        }
        let first = u8::try_from(plan.acts.len()).unwrap_or_default();
        if !self.faults.is_empty() {
            let own = DEEDS.map(|deed| OwnerAct { blob: 0, deed });
            plan.acts.extend(own);
        }
        plan.trouble
            .faults
            .extend(self.faults.iter().map(|fault| Fault {
                mishap: match fault.mishap {
                    Mishap::OwnerBefore(act) => Mishap::OwnerBefore(first + act),
                    Mishap::OwnerAfter(act) => Mishap::OwnerAfter(first + act),
                    other => other,
                },
                ..*fault
            }));
        let mut fault = |operation, nth, mishap| {
            let resource = "";
            let aim = Aim {
                operation,
                resource,
                nth,
            };
            plan.trouble.faults.push(Fault { aim, mishap });
        };
        if let Some((page_size, nth)) = self.crowd {
            for blob in &mut plan.blobs {
                blob.container = 0;
            }
            plan.page_size = page_size;
            fault(Operation::Change, nth, Mishap::CrashBefore);
        }
        if let Some(nth) = self.stop_at {
            fault(Operation::Lease, nth, Mishap::Stop);
        }
        if let Some(nth) = self.drop_before {
            let act = u8::try_from(plan.acts.len()).unwrap_or_default();
            let deed = Deed::DropDead;
            plan.acts.push(OwnerAct { blob: 0, deed });
            plan.dead_account = Some(Which::Main);
            fault(Operation::Copy, nth, Mishap::OwnerBefore(act));
        }
        plan.extras = self;
        plan
    }
}

/// Generates circumstances; half of the runs have none.
pub(super) fn extras() -> impl Strategy<Value = Extras> {
    let rule_h = prop_oneof![2 => Just(None), 1 => (0u16..120).prop_map(Some)];
    let without_md5 = prop_oneof![2 => Just(false), 1 => Just(true)];
    let nth = (1u16..5, 1u16..5);
    let circumstances = (any::<bool>(), any::<bool>(), rule_h, without_md5, nth);
    let drop_before = proptest::option::weighted(0.2, 2u16..6);
    let busy = faults::busy(REQUESTS_MAX);
    let rate_per_s = proptest::option::weighted(0.2, 3u32..20);
    let crowd = proptest::option::weighted(0.15, (1u32..4, 1u16..8));
    let stop_at = proptest::option::weighted(0.2, 4u16..40);
    let own = (drop_before, rate_per_s, any::<bool>(), crowd, stop_at);
    let own = own.prop_map(
        |(drop_before, rate_per_s, has_budget, crowd, stop_at)| Extras {
            drop_before,
            rate_per_s,
            has_budget,
            crowd,
            stop_at,
            ..Extras::default()
        },
    );
    let all = (circumstances, any::<bool>(), busy, own);
    all.prop_map(|(circumstances, hierarchical, busy, own)| {
        let (any, drifts, rule_h, without_md5, (deletes, copies)) = circumstances;
        if !any {
            return own;
        }
        let fault = |(operation, resource, nth, mishap)| Fault {
            aim: Aim {
                operation,
                resource,
                nth,
            },
            mishap,
        };
        // A copy is cut short before its maker looks at it.
        let cut = (Operation::Copy, "", copies, Mishap::OwnerAfter(0));
        // A blob loses its tag between the listing and the delete.
        let retag = (
            Operation::Delete,
            "/events/",
            deletes,
            Mishap::OwnerBefore(1),
        );
        let cut = without_md5.then_some(cut);
        let retag = rule_h.map(|_| retag);
        Extras {
            drifts,
            rule_h,
            without_md5,
            hierarchical,
            faults: (cut.into_iter().chain(retag).map(fault))
                .chain(busy)
                .collect(),
            ..own
        }
    })
}
