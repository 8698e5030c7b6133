//! What histories have reached: operation x outcome x condition, and the circumstances in which
//! operations met, counted against the model's closed lists; and the intent of operations compared
//! with their outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::sync::LazyLock;

use smalt_model::Expected;
use smalt_model::matrix::{Place, places};
use smalt_model::outcomes::{Cell, Header, Outcome, cells};

use super::generate::{Intent, Step};

/// All cells that the model declares.
static DECLARED: LazyLock<BTreeSet<Cell>> = LazyLock::new(|| cells().collect());

/// All circumstances that the model declares.
static PLACES: LazyLock<BTreeSet<Place>> = LazyLock::new(|| places().collect());

/// Cells that no history can reach, each with its reason.
pub const UNREACHABLE: &[(&str, &str, &str)] = &[];

/// How often each cell was reached, and the intents of operations.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    cells: BTreeMap<Cell, u64>,
    places: BTreeMap<Place, u64>,
    /// Pairs of intent and outcome.
    intents: BTreeMap<(Intent, Intent), u64>,
}

/// Percentages of valid operations, near misses and malformed ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Operations that succeed.
    pub valid: f64,
    /// Operations rejected because of the state.
    pub near: f64,
    /// Operations rejected because of their syntax.
    pub malformed: f64,
}

impl Coverage {
    /// Counts a step, which belongs to this row and header, with its answer.
    ///
    /// # Errors
    /// When the model predicts an outcome that it does not declare.
    pub fn note(
        &mut self,
        step: &Step,
        (operation, header): (&'static str, Header),
        expected: &Expected,
    ) -> Result<(), String> {
        let came = Intent::of(&step.operation, expected);
        *self.intents.entry((step.intent, came)).or_default() += 1;
        if came == Intent::Time {
            return Ok(());
        }
        let outcome = Outcome {
            status: expected.status,
            code: expected.code,
        };
        let cell = Cell {
            operation,
            outcome,
            header,
        };
        if let Some(count) = self.cells.get_mut(&cell) {
            *count += 1;
            return Ok(());
        }
        if !DECLARED.contains(&cell) {
            return Err(format!("the model does not declare {}", Shown(&cell)));
        }
        self.cells.insert(cell, 1);
        Ok(())
    }

    /// Counts the circumstances of a step.
    ///
    /// # Errors
    /// When the model does not declare one of them.
    pub fn note_places(&mut self, seen: impl Iterator<Item = Place>) -> Result<(), String> {
        for place in seen {
            if !PLACES.contains(&place) {
                return Err(format!("the model does not declare `{place}`"));
            }
            *self.places.entry(place).or_default() += 1;
        }
        Ok(())
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Coverage) {
        for (cell, count) in &other.cells {
            *self.cells.entry(*cell).or_default() += count;
        }
        for (place, count) in &other.places {
            *self.places.entry(*place).or_default() += count;
        }
        for (intents, count) in &other.intents {
            *self.intents.entry(*intents).or_default() += count;
        }
    }

    /// Returns the number of steps, including steps of time.
    pub fn steps(&self) -> u64 {
        self.intents.values().sum()
    }

    /// Returns the number of cells reached.
    pub fn reached(&self) -> usize {
        self.cells.len()
    }

    /// Returns the number of declared cells.
    pub fn declared() -> usize {
        DECLARED.len()
    }

    /// Returns the cells that were not reached, in order.
    pub fn unreached(&self) -> Vec<Cell> {
        let declared = DECLARED.iter().copied();
        let open = |cell: &Cell| !self.cells.contains_key(cell) && excuse(cell).is_none();
        declared.filter(open).collect()
    }

    /// Returns the circumstances that were not reached, in order, and how many there are.
    pub fn unreached_places(&self) -> (Vec<Place>, usize) {
        let is_open = |place: &&Place| !self.places.contains_key(place);
        (
            PLACES.iter().filter(is_open).copied().collect(),
            PLACES.len(),
        )
    }

    /// Returns each area of circumstances: how many of its cells were reached, how many it has, and
    /// how often the rarest one was.
    pub fn areas(&self) -> BTreeMap<&'static str, (usize, usize, u64)> {
        let mut areas = BTreeMap::new();
        for place in PLACES.iter() {
            let count = self.places.get(place).copied().unwrap_or_default();
            let (reached, all, rarest) = areas.entry(place.area).or_insert((0, 0, u64::MAX));
            *reached += usize::from(count > 0);
            *all += 1;
            *rarest = count.min(*rarest);
        }
        areas
    }

    /// Returns the cells in [`UNREACHABLE`] that were reached.
    pub fn stale_excuses(&self) -> Vec<Cell> {
        let reached = self.cells.keys().copied();
        reached.filter(|cell| excuse(cell).is_some()).collect()
    }

    fn mix(&self, side: impl Fn(&(Intent, Intent)) -> Intent) -> Mix {
        let sum = |wanted: Intent| -> u64 {
            let counted = self.intents.iter().filter(|(key, _)| side(key) == wanted);
            counted.map(|(_, count)| count).sum()
        };
        let [valid, near, malformed] =
            [Intent::Valid, Intent::NearMiss, Intent::Malformed].map(sum);
        let all = (valid + near + malformed).max(1) as f64;
        let share = |count: u64| 100.0 * count as f64 / all;
        Mix {
            valid: share(valid),
            near: share(near),
            malformed: share(malformed),
        }
    }

    /// Returns the shares by intent.
    pub fn intended(&self) -> Mix {
        self.mix(|(meant, _)| *meant)
    }

    /// Returns the shares by outcome.
    pub fn actual(&self) -> Mix {
        self.mix(|(_, came)| *came)
    }
}

fn excuse(cell: &Cell) -> Option<&'static str> {
    let code = cell
        .outcome
        .code
        .map_or("", smalt_protocol::ErrorCode::as_str);
    let found = UNREACHABLE
        .iter()
        .find(|(operation, excused, _)| *operation == cell.operation && *excused == code);
    found.map(|(_, _, reason)| *reason)
}

/// Displays a cell as a line of the table.
pub struct Shown<'a>(pub &'a Cell);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell {
            operation,
            outcome,
            header,
        } = self.0;
        let code = outcome.code.map_or("", smalt_protocol::ErrorCode::as_str);
        let outcome = format!("{} {code}", outcome.status);
        write!(f, "{operation:<36} {outcome:<46} {:<36}", header.name())
    }
}

impl Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mix {
            valid,
            near,
            malformed,
        } = self;
        write!(
            f,
            "{valid:.1} % valid, {near:.1} % near misses, {malformed:.1} % malformed"
        )
    }
}

impl Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (cell, count) in &self.cells {
            writeln!(f, "{} {count:>9}", Shown(cell))?;
        }
        for place in PLACES.iter() {
            let count = self.places.get(place).copied().unwrap_or_default();
            writeln!(f, "{place:<100} {count:>9}")?;
        }
        let unreached = self.unreached();
        writeln!(f, "\n{} cells unreached", unreached.len())?;
        for cell in &unreached {
            writeln!(f, "{}", Shown(cell))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use smalt_model::vocabulary::{Operation, QueueOperation};
    use smalt_protocol::ErrorCode;

    use super::*;

    const ROW: (&str, Header) = ("message clear", Header::NONE);

    fn step() -> Step {
        Step {
            intent: Intent::Valid,
            operation: Operation::Queue("q".to_owned(), QueueOperation::Clear),
        }
    }

    /// Every outcome of the model counts: an undeclared one stops the run.
    #[test]
    fn undeclared_outcome_is_an_error() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.note(&step(), ROW, &Expected::ok(204)), Ok(()));
        assert!(coverage.note(&step(), ROW, &Expected::ok(200)).is_err());
        let refused = smalt_model::expected::Refusal::from(ErrorCode::BlobNotFound);
        assert!(coverage.note(&step(), ROW, &refused.into()).is_err());
    }

    #[test]
    fn unreached_cell_is_listed_until_it_is_reached() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.unreached().len(), Coverage::declared());
        coverage.note(&step(), ROW, &Expected::ok(204)).unwrap();
        assert_eq!(coverage.unreached().len(), Coverage::declared() - 1);
        assert_eq!(coverage.actual().valid, 100.0);
    }
}
