//! Circumstances of some runs: clocks that drift, a rule by index tag, blobs without an MD5,
//! accounts with a hierarchical namespace, and a service that is busy.
//!
//! They are drawn after everything else, so that a seed keeps its plan.

use std::time::Duration;

use proptest::prelude::*;
use smalt_sweeper::decide::Rule;

use super::plan::{Deed, Life, Names, OwnerAct, REQUESTS_MAX, SWEPT, SweepPlan};
use crate::scenario::faults::{self, Aim, Fault, Mishap, Operation};

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
    let all = (circumstances, any::<bool>(), faults::busy(REQUESTS_MAX));
    all.prop_map(|(circumstances, hierarchical, busy)| {
        let (any, drifts, rule_h, without_md5, (deletes, copies)) = circumstances;
        if !any {
            return Extras::default();
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
        }
    })
}
