//! Chooses the next operation from random bytes: about seven in ten can succeed in the current
//! state, one in four is a near miss, one in twenty breaks a rule of syntax.
//!
//! Every operation has an [`Intent`]: for a near miss the kind of mistake is chosen first and
//! everything else is correct. An operation that does not match its intent according to the model
//! is generated again from other bytes. Names are few, so that operations often meet. Zero bytes
//! give the simplest choices, which shrinking leads to.
//!
//! - [`dice`]: random bytes, and what they are used for.
//! - `space`: names. `parts`: kinds of operations, leases, conditions.
//! - `blobs`, `tiers`, `containers`, `lake`, `queues`, `tables`, `access`: operations.
//! - `themes`: what some histories are about.

mod access;
mod blobs;
mod containers;
pub mod dice;
mod lake;
mod parts;
mod queues;
mod space;
mod tables;
mod themes;
mod tiers;

use smalt_model::hints::Alone;
use smalt_model::outcomes::{Cell, Situation};
use smalt_model::vocabulary::tables::TableOperation;
use smalt_model::vocabulary::{
    AccountOperation, ContainerOperation, Malformed, Operation, PathOperation,
};
use smalt_model::{Expected, Model};

pub use dice::{DICE, TABLE_DICE};
use dice::{Dice, Miss};
use parts::Kind;
use space::CONTAINERS;
pub use space::Space;

/// How often an operation that does not match its intent is generated again.
const TRIES: u8 = 8;
/// Percentage of requests that break a rule of syntax.
const MALFORMED_PERCENT: u8 = 5;
/// Percentage of requests to be rejected because of the state.
const NEAR_PERCENT: u8 = 24;
/// Percentage of steps that let time pass.
const ADVANCE_PERCENT: u8 = 6;
/// Percentage of time steps that let the week of uncommitted blocks pass, if there are blobs with
/// nothing but uncommitted blocks.
const WEEK_PERCENT: u8 = 30;
/// Percentage of operations that go to uncommitted blocks past their week, if there are any.
const LAPSED_PERCENT: u8 = 30;
/// Percentage of operations that go to uncommitted blocks within their week, if there are any.
const ALONE_PERCENT: u8 = 6;
/// Percentage of steps that restart the service, in histories with restarts.
const RESTART_PERCENT: u8 = 2;
/// Percentage of operations that target a cell that was not reached yet, if there is one.
const WISH_PERCENT: u8 = 60;
/// Percentage of time steps that lead to an end, or to a second before or after it, if there is
/// one.
const END_PERCENT: u8 = 80;
/// Other time steps in seconds.
const SECONDS: [u64; 10] = [1, 5, 14, 15, 16, 30, 60, 61, 3_600, WEEK_S];
const WEEK_S: u64 = 7 * 24 * 3_600;

/// The intended outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Intent {
    /// It succeeds.
    Valid,
    /// It is rejected because of the state.
    NearMiss,
    /// It is rejected because of its syntax.
    Malformed,
    /// It sends no request.
    Time,
}

impl Intent {
    /// Returns the outcome of an operation.
    pub fn of(operation: &Operation, expected: &Expected) -> Self {
        match operation {
            Operation::Advance { .. } | Operation::Restart => Intent::Time,
            Operation::Malformed(_) | Operation::Table(_, TableOperation::Malformed(_)) => {
                Intent::Malformed
            }
            _ if expected.is_done() => Intent::Valid,
            _ => Intent::NearMiss,
        }
    }
}

/// A step of a history, with its intent.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Intended outcome of the operation.
    pub intent: Intent,
    /// The operation of the step.
    pub operation: Operation,
}

impl Space {
    fn kinds(self) -> impl Iterator<Item = &'static Kind> {
        let all: &[&[Kind]] = match (self.tables, self.lake) {
            (true, _) => &[tables::KINDS, access::OF_TABLES],
            (_, true) => &[lake::KINDS],
            _ => &[
                containers::KINDS,
                blobs::KINDS,
                tiers::KINDS,
                queues::KINDS,
                access::KINDS,
            ],
        };
        let is_open = move |kind: &&Kind| {
            let is_about = self
                .theme
                .is_none_or(|theme| theme.kinds.contains(&kind.name));
            (self.wide || !kind.wide) && is_about
        };
        all.iter().copied().flatten().filter(is_open)
    }

    fn is_empty(self, model: &Model) -> bool {
        match self.tables {
            true => tables::is_empty(model),
            false => containers::is_empty(model, self),
        }
    }

    /// Returns the first operation of a history, which is always possible.
    fn simplest(self, model: &Model) -> Operation {
        match self.tables {
            true => tables::simplest(model),
            false => containers::simplest(model),
        }
    }

    /// Returns a request that is rejected in every state.
    fn malformed(self, dice: &mut Dice<'_>) -> Operation {
        if self.tables {
            return tables::malformed(dice);
        }
        let which = dice.one(&Malformed::ALL);
        Operation::Malformed(which.unwrap_or(Malformed::ContainerName))
    }
}

fn named(name: &str) -> Option<&'static Kind> {
    let spaces = [Space::HISTORY, Space::TABLES, Space::LAKE];
    let mut all = spaces.into_iter().flat_map(Space::kinds);
    all.find(|kind| kind.name == name)
}

/// Returns an operation for the current state.
pub fn choose(model: &Model, space: Space, dice: &[u8]) -> Operation {
    step(model, space, &[], dice).operation
}

/// Returns a step for the current state. `wishes` are cells to target.
pub fn step(model: &Model, space: Space, wishes: &[Cell], bytes: &[u8]) -> Step {
    let mut first = Dice::new(bytes, space, 0);
    let time = |operation| Step {
        intent: Intent::Time,
        operation,
    };
    if space.restarts && first.chance(RESTART_PERCENT) {
        return time(Operation::Restart);
    }
    let advances = space.theme.map_or(ADVANCE_PERCENT, |it| it.advance_percent);
    if space.advances && first.chance(advances) {
        let weeks = is_somewhere(model, space, Alone::Kept) && first.chance(WEEK_PERCENT);
        let seconds = match weeks {
            true => WEEK_S,
            false => to_an_end(model, &mut first)
                .or_else(|| first.one(&SECONDS))
                .unwrap_or(1),
        };
        return time(Operation::Advance { seconds });
    }
    let intent = intent(space, &mut first);
    if intent == Intent::Malformed {
        let operation = space.malformed(&mut first);
        return Step { intent, operation };
    }
    let mut made = None;
    for salt in 0..TRIES {
        let dice = &mut Dice::new(first.rest(), space, salt);
        let Some(operation) = candidate(model, intent, wishes, dice) else {
            continue;
        };
        let expected = model.clone().step(&operation);
        let is_meant = Intent::of(&operation, &expected) == intent;
        made = Some(operation);
        if is_meant {
            break;
        }
    }
    let operation = made.unwrap_or_else(|| space.simplest(model));
    Step { intent, operation }
}

/// Returns the seconds to an end of the model, usually the next one, or one less or more.
fn to_an_end(model: &Model, dice: &mut Dice<'_>) -> Option<u64> {
    if !dice.chance(END_PERCENT) {
        return None;
    }
    let ends = model.ends_s();
    let place = dice.below(ends.len()).min(dice.below(ends.len()));
    let left_s = ends.get(place)? - model.now_s();
    let steps = [left_s, left_s - 1, left_s - 1, left_s + 1];
    dice.one(&steps).map(|step_s| step_s.max(1))
}

/// Whether blobs with such blocks exist anywhere.
fn is_somewhere(model: &Model, space: Space, alone: Alone) -> bool {
    let mut all = CONTAINERS[..space.containers].iter();
    all.any(|name| model.has_alone(name, "", alone))
}

/// Sometimes goes to a blob with nothing but uncommitted blocks, which is the only place where the
/// end of their week shows.
fn to_blocks(model: &Model, is_near: bool, dice: &mut Dice<'_>) -> Option<&'static str> {
    let space = dice.space;
    if !space.advances || space.lake {
        return None;
    }
    for (alone, percent) in [
        (Alone::Lapsed, LAPSED_PERCENT),
        (Alone::Kept, ALONE_PERCENT),
    ] {
        if is_somewhere(model, space, alone) && dice.chance(percent) {
            let names: &[&str] = match (alone, is_near) {
                (Alone::Lapsed, true) => {
                    dice.miss = Some(Miss::Detail);
                    &[
                        "blob delete",
                        "blob get block list",
                        "blob put block list",
                        "blob put block",
                    ]
                }
                (Alone::Lapsed, false) => &["container list", "blob put block"],
                (Alone::Kept, false) => &["blob delete", "container list"],
                (Alone::Kept, true) => return None,
            };
            dice.alone = Some(alone);
            return dice.one(names);
        }
    }
    None
}

fn intent(space: Space, dice: &mut Dice<'_>) -> Intent {
    let percent = dice.percent();
    if percent < 100 - NEAR_PERCENT - MALFORMED_PERCENT {
        Intent::Valid
    } else if percent < 100 - MALFORMED_PERCENT || !space.malformed {
        Intent::NearMiss
    } else {
        Intent::Malformed
    }
}

fn candidate(
    model: &Model,
    intent: Intent,
    wishes: &[Cell],
    dice: &mut Dice<'_>,
) -> Option<Operation> {
    if intent == Intent::Valid && dice.space.is_empty(model) && !dice.chance(20) {
        return Some(dice.space.simplest(model));
    }
    let is_near = intent == Intent::NearMiss;
    if let Some(name) = to_blocks(model, is_near, dice) {
        return (named(name)?.make)(model, dice);
    }
    if !wishes.is_empty() && dice.space.theme.is_none() && dice.chance(WISH_PERCENT) {
        let (before, after) = wishes.split_at(usize::from(
            dice.wide_below(u16::try_from(wishes.len()).unwrap_or(u16::MAX)),
        ));
        let mut meant = after.iter().chain(before);
        let meant = meant.find(|cell| cell.outcome.code.is_some() == is_near);
        if let Some(cell) = meant {
            // Rows of a hierarchical account say nothing of conditions.
            dice.header = (!dice.space.lake).then_some(cell.header);
            dice.code = cell.outcome.code;
            dice.miss = dice.code.map(Miss::of);
            let situation = Situation::named(cell.operation);
            dice.alone = situation.map(|situation| situation.alone);
            let name = situation.map_or(cell.operation, |situation| situation.operation);
            return (named(name)?.make)(model, dice);
        }
    }
    if is_near {
        dice.miss = dice.one(&Miss::ALL);
    }
    let space = dice.space;
    let mut place = dice.wide_below(space.kinds().map(|kind| kind.weight).sum());
    let chosen = space.kinds().find(|kind| {
        let is_here = place < kind.weight;
        place = place.saturating_sub(kind.weight);
        is_here
    })?;
    (chosen.make)(model, dice)
}

/// Whether an operation with several pages is not atomic.
pub fn is_listing(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Container(_, ContainerOperation::List { .. })
            | Operation::Account(
                AccountOperation::Containers(_)
                    | AccountOperation::Queues(_)
                    | AccountOperation::Find { .. }
            )
            | Operation::Path(_, PathOperation::List { .. })
    )
}

#[cfg(test)]
mod tests {
    use smalt_model::vocabulary::tables::TableMalformed;

    use super::*;

    /// Every row of the matrix has its generator, and every generator a row.
    #[test]
    fn every_row_has_a_generator_and_vice_versa() {
        let spaces = [Space::HISTORY, Space::TABLES, Space::LAKE].into_iter();
        let kinds = spaces.flat_map(Space::kinds);
        let mut made: Vec<&str> = kinds.map(|kind| kind.name).collect();
        made.extend(Malformed::ALL.map(Malformed::operation));
        made.extend(TableMalformed::ALL.map(TableMalformed::operation));
        made.sort_unstable();
        let rows = smalt_model::outcomes::rows();
        type Rows = Vec<&'static smalt_model::outcomes::Row>;
        let (special, rows): (Rows, Rows) = rows.partition(|row| row.situation().is_some());
        assert_eq!(special.len(), smalt_model::outcomes::SITUATIONS.len());
        for row in special {
            let of = row.situation().map(|situation| situation.operation);
            assert!(of.is_some_and(|name| named(name).is_some()), "{row:?}");
        }
        let mut rows: Vec<&str> = rows.iter().map(|row| row.operation).collect();
        rows.sort_unstable();
        assert_eq!(made, rows);
    }

    /// Shrinking leads to zero bytes, which must give the simplest history.
    #[test]
    fn zero_bytes_give_the_simplest_history() {
        let model = Model::new(0);
        for space in [Space::HISTORY, Space::TABLES] {
            let space = space.restarting(true);
            let made = step(&model, space, &[], &[0; TABLE_DICE]);
            assert_eq!(made.intent, Intent::Valid);
            assert_eq!(made.operation, space.simplest(&model));
        }
    }
}
