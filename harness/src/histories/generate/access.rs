//! Stored access policies, and reads with signatures.

use smalt_model::Model;
use smalt_model::vocabulary::{AccessOperation, Operation, Right, Terms};
use smalt_protocol::Service;

use super::dice::{Dice, Miss};
use super::parts::{Kind, wide};
use super::space::{CONTAINERS, QUEUES};
use super::tables::TABLES;

pub(super) const KINDS: &[Kind] = &[
    wide("container set policy", 14, |m, d| set(m, d, Service::Blob)),
    wide("container signed list", 26, |m, d| {
        read(m, d, Service::Blob)
    }),
    wide("queue set policy", 14, |m, d| set(m, d, Service::Queue)),
    wide("queue signed peek", 26, |m, d| read(m, d, Service::Queue)),
];
pub(super) const OF_TABLES: &[Kind] = &[
    wide("table set policy", 16, |m, d| set(m, d, Service::Table)),
    wide("table signed query", 40, |m, d| read(m, d, Service::Table)),
];

/// Percentage of reads that name the stored policy, if there is one.
const BY_POLICY_PERCENT: u8 = 65;

/// Returns a resource that exists; for a near miss, one that does not.
fn name(model: &Model, dice: &mut Dice<'_>, service: Service) -> Option<String> {
    let all: &[&str] = match service {
        Service::Blob => &CONTAINERS,
        Service::Queue => &QUEUES,
        Service::Table => &TABLES,
    };
    let is_absent = dice.misses(Miss::Absent);
    let fits = |name: &&&str| model.has(service, name) != is_absent;
    let fitting: Vec<&str> = all.iter().filter(fits).copied().collect();
    dice.one(&fitting).map(str::to_owned)
}

fn access(service: Service, name: String, operation: AccessOperation) -> Option<Operation> {
    Some(Operation::Access(service, name, operation))
}

/// Stores a policy whose window begins and ends around now.
fn set(model: &Model, dice: &mut Dice<'_>, service: Service) -> Option<Operation> {
    let name = name(model, dice, service)?;
    let now_s = model.now_s();
    let policy = (!dice.chance(15)).then(|| Terms {
        start_s: dice
            .one(&[None, Some(now_s), Some(now_s + 15), Some(now_s - 1)])
            .flatten(),
        expiry_s: dice
            .one(&[
                Some(now_s + 15),
                Some(now_s + 60),
                None,
                Some(now_s),
                Some(now_s + 1),
            ])
            .flatten(),
        right: dice
            .one(&[
                Some(Right::Read),
                None,
                Some(Right::Read),
                Some(Right::Other),
            ])
            .flatten(),
    });
    access(service, name, AccessOperation::Set(policy))
}

/// Reads with a signature whose window includes now; for a near miss, with one mistake.
fn read(model: &Model, dice: &mut Dice<'_>, service: Service) -> Option<Operation> {
    let name = name(model, dice, service)?;
    let now_s = model.now_s();
    let is_wrong = dice.miss.is_some() && !dice.misses(Miss::Absent);
    let stored = model.policy(service, &name);
    let by_policy = match stored {
        Some(_) => dice.chance(BY_POLICY_PERCENT),
        None => is_wrong && dice.chance(15),
    };
    let stored = stored.filter(|_| by_policy).unwrap_or_default();
    let mut own = Terms {
        start_s: dice.one(&[None, Some(now_s), Some(now_s - 1)]).flatten(),
        expiry_s: dice.one(&[now_s + 1, now_s + 60]),
        right: Some(Right::Read),
    };
    // What the policy says is left out, except for some near misses.
    let keeps = if is_wrong { dice.below(8) } else { usize::MAX };
    own.start_s = own
        .start_s
        .filter(|_| stored.start_s.is_none() || keeps == 0);
    own.expiry_s = own
        .expiry_s
        .filter(|_| stored.expiry_s.is_none() || keeps == 1);
    own.right = own.right.filter(|_| stored.right.is_none() || keeps == 2);
    if is_wrong {
        match dice.below(6) {
            0 if own.start_s.is_some() => own.start_s = Some(now_s + 1),
            1 if own.expiry_s.is_some() => own.expiry_s = Some(now_s),
            2 if own.expiry_s.is_some() => own.expiry_s = Some(now_s - 1),
            3 if own.right.is_some() => own.right = Some(Right::Other),
            4 => own.right = None,
            5 => own.expiry_s = None,
            _ => {}
        }
    }
    access(service, name, AccessOperation::Read { by_policy, own })
}
