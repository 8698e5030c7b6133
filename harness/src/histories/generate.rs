//! The next operation, out of random bytes: about seven in ten can succeed as things stand, one in
//! four misses narrowly, one in twenty breaks a rule of syntax.
//!
//! An operation is made for its [`Intent`]: for a near miss the way of missing is chosen first and
//! everything else is right. What then fails its intent after all (the model knows) is made again
//! out of other bytes. Names are few, so that histories meet themselves again and again. Zero
//! bytes are the simplest choice: shrinking leads there.
//!
//! - [`dice`]: random bytes, and what they are to be used for.
//! - `parts`: names, leases, conditions. `blobs`, `containers`, `queues`: operations.

mod blobs;
mod containers;
pub mod dice;
mod parts;
mod queues;

use smalt_model::hints::Alone;
use smalt_model::outcomes::{Cell, Situation};
use smalt_model::vocabulary::tables::TableOperation;
use smalt_model::vocabulary::{ContainerOperation, Malformed, Metadata, Operation};
use smalt_model::{Expected, Model};

pub use dice::DICE;
use dice::{Dice, Miss};

/// How often an operation is made anew that fails its intent.
const TRIES: u8 = 8;
/// Of a hundred operations that ask something of the service, so many break a rule of syntax.
const MALFORMED_PERCENT: u8 = 5;
/// Of a hundred, so many are to be refused as things stand.
const NEAR_PERCENT: u8 = 24;
/// Of a hundred steps, so many let time pass.
const ADVANCE_PERCENT: u8 = 6;
/// Of a hundred steps of time that find blocks alone, so many let their week pass.
const WEEK_PERCENT: u8 = 30;
/// Of a hundred operations that find blocks past their week, so many go there.
const LAPSED_PERCENT: u8 = 30;
/// Of a hundred operations that find blocks alone within their week, so many go there.
const ALONE_PERCENT: u8 = 6;
/// Of a hundred steps, so many stop and start the service, where that is wanted.
const RESTART_PERCENT: u8 = 2;
/// Of a hundred operations, so many go for a cell that nothing has reached yet, if there is one.
const WISH_PERCENT: u8 = 60;
/// Steps of time in seconds: around the ends of leases, visibility, lives and retention.
const SECONDS: [u64; 10] = [1, 5, 14, 15, 16, 30, 60, 61, 3_600, WEEK_S];
const WEEK_S: u64 = 7 * 24 * 3_600;

const CONTAINERS: [&str; 3] = ["con0", "con1", "con2"];
const BLOBS: [&str; 4] = ["b0", "b1", "dir/b0", "dir/b1"];
const QUEUES: [&str; 2] = ["que0", "que1"];

/// What an operation is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Intent {
    /// It is to be done.
    Valid,
    /// It is to be refused for what is there.
    NearMiss,
    /// It is to be refused for its syntax.
    Malformed,
    /// It asks nothing of the service.
    Time,
}

impl Intent {
    /// What an operation came to.
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

/// A step of a history and what it was made for.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What it was made for.
    pub intent: Intent,
    /// The operation.
    pub operation: Operation,
}

/// What a history is about.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    containers: usize,
    blobs: usize,
    queues: usize,
    /// Append and page blobs, properties, copies by bytes, listings of the account, soft delete.
    wide: bool,
    /// Time passes.
    advances: bool,
    /// The service is stopped and started.
    restarts: bool,
}

impl Space {
    /// Few names, and time.
    pub const HISTORY: Space = Space {
        containers: CONTAINERS.len(),
        blobs: BLOBS.len(),
        queues: QUEUES.len(),
        wide: true,
        advances: true,
        restarts: false,
    };
    /// The same with restarts.
    pub const RESTARTS: Space = Space {
        restarts: true,
        ..Space::HISTORY
    };
    /// What block blobs, containers, leases and queues alone are asked.
    pub const NARROW: Space = Space {
        wide: false,
        ..Space::HISTORY
    };
    /// One name of each kind in one moment: everybody meets there.
    pub const BURST: Space = Space {
        containers: 1,
        blobs: 1,
        queues: 1,
        wide: false,
        advances: false,
        restarts: false,
    };
}

/// Makes one kind of operation; nothing where the state at hand does not allow it.
type Make = fn(&Model, &mut Dice<'_>) -> Option<Operation>;

/// One kind of operation: its name in the matrix, how often it is made, how.
struct Kind {
    name: &'static str,
    weight: u16,
    wide: bool,
    make: Make,
}

const fn kind(name: &'static str, weight: u16, make: Make) -> Kind {
    Kind {
        name,
        weight,
        wide: false,
        make,
    }
}

const fn wide(name: &'static str, weight: u16, make: Make) -> Kind {
    Kind {
        name,
        weight,
        wide: true,
        make,
    }
}

fn named(name: &str) -> Option<&'static Kind> {
    kinds().find(|kind| kind.name == name)
}

fn kinds() -> impl Iterator<Item = &'static Kind> {
    let all = [containers::KINDS, blobs::KINDS, queues::KINDS];
    all.into_iter().flatten()
}

/// An operation for the state at hand.
pub fn choose(model: &Model, space: Space, dice: &[u8]) -> Operation {
    step(model, space, &[], dice).operation
}

/// A step for the state at hand. `wishes` are cells to go for.
pub fn step(model: &Model, space: Space, wishes: &[Cell], bytes: &[u8]) -> Step {
    let mut first = Dice::new(bytes, space, 0);
    let time = |operation| Step {
        intent: Intent::Time,
        operation,
    };
    if space.restarts && first.chance(RESTART_PERCENT) {
        return time(Operation::Restart);
    }
    if space.advances && first.chance(ADVANCE_PERCENT) {
        let weeks = is_somewhere(model, space, Alone::Kept) && first.chance(WEEK_PERCENT);
        let seconds = match weeks {
            true => WEEK_S,
            false => first.one(&SECONDS).unwrap_or(1),
        };
        return time(Operation::Advance { seconds });
    }
    let intent = intent(space, &mut first);
    if intent == Intent::Malformed {
        let which = first.one(&Malformed::ALL);
        let which = which.unwrap_or(Malformed::ContainerName);
        return Step {
            intent,
            operation: Operation::Malformed(which),
        };
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
    let operation = made.unwrap_or_else(|| containers::simplest(model));
    Step { intent, operation }
}

/// Whether such blocks stand anywhere.
fn is_somewhere(model: &Model, space: Space, alone: Alone) -> bool {
    let mut all = CONTAINERS[..space.containers].iter();
    all.any(|name| model.has_alone(name, "", alone))
}

/// Goes where blocks stand alone, now and then: what their week has come to is seen nowhere else.
fn to_blocks(model: &Model, is_near: bool, dice: &mut Dice<'_>) -> Option<&'static str> {
    let space = dice.space;
    if !space.advances {
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
    } else if percent < 100 - MALFORMED_PERCENT || !space.advances {
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
    if intent == Intent::Valid && containers::is_empty(model, dice.space) && !dice.chance(20) {
        return Some(containers::simplest(model));
    }
    let is_near = intent == Intent::NearMiss;
    if let Some(name) = to_blocks(model, is_near, dice) {
        return (named(name)?.make)(model, dice);
    }
    if !wishes.is_empty() && dice.chance(WISH_PERCENT) {
        let (before, after) = wishes.split_at(usize::from(
            dice.wide_below(u16::try_from(wishes.len()).unwrap_or(u16::MAX)),
        ));
        let mut meant = after.iter().chain(before);
        let meant = meant.find(|cell| cell.outcome.code.is_some() == is_near);
        if let Some(cell) = meant {
            dice.header = Some(cell.header);
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
    let is_open = |kind: &&Kind| dice.space.wide || !kind.wide;
    let all: u16 = kinds().filter(is_open).map(|kind| kind.weight).sum();
    let mut place = dice.wide_below(all);
    let wide = dice.space.wide;
    let chosen = kinds().filter(|kind| wide || !kind.wide).find(|kind| {
        let is_here = place < kind.weight;
        place = place.saturating_sub(kind.weight);
        is_here
    })?;
    (chosen.make)(model, dice)
}

fn metadata(dice: &mut Dice<'_>) -> Metadata {
    let names = ["mark", "owner"];
    let count = dice.below(3);
    let pair = |name: &&str| ((*name).to_owned(), parts::VALUES[dice.below(3)].to_owned());
    names.iter().take(count).map(pair).collect()
}

/// A page that holds everything, or a small one.
fn page(dice: &mut Dice<'_>) -> u32 {
    dice.one(&[5_000, 1, 2, 3]).unwrap_or(5_000)
}

/// Whether several pages of an operation are several moments.
pub fn is_listing(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Container(_, ContainerOperation::List { .. })
            | Operation::Account(
                smalt_model::vocabulary::AccountOperation::Containers(_)
                    | smalt_model::vocabulary::AccountOperation::Queues(_)
            )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row of the matrix has its maker, and no maker is without a row.
    #[test]
    fn kinds_and_rows_belong_together() {
        let mut made: Vec<&str> = kinds().map(|kind| kind.name).collect();
        made.extend(Malformed::ALL.map(Malformed::operation));
        made.sort_unstable();
        let rows = smalt_model::outcomes::ROWS.iter();
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

    /// Shrinking leads to zero bytes: they have to be the simplest history.
    #[test]
    fn zero_bytes_are_simple() {
        let model = Model::new(0);
        let made = step(&model, Space::RESTARTS, &[], &[0; DICE]);
        assert_eq!(made.intent, Intent::Valid);
        assert_eq!(made.operation, containers::simplest(&model));
    }
}
