//! What went wrong in a run: how often, and the numbers that it happened to.

use std::collections::BTreeMap;
use std::fmt;

/// Numbers that are named of one wrong thing, at most.
const NAMED_MAX: usize = 10;

/// How often each wrong thing happened, and the first numbers of it.
pub type Wrongs<W> = BTreeMap<W, (u64, Vec<u64>)>;

/// Notes that something happened so many times, to these among others.
pub fn note<W: Ord>(
    wrongs: &mut Wrongs<W>,
    wrong: W,
    times: u64,
    numbers: impl IntoIterator<Item = u64>,
) {
    if times == 0 {
        return;
    }
    let (noted, named) = wrongs.entry(wrong).or_default();
    *noted += times;
    let room = NAMED_MAX.saturating_sub(named.len());
    named.extend(numbers.into_iter().take(room));
}

/// A line for each.
pub fn write<W: Copy>(
    out: &mut fmt::Formatter<'_>,
    wrongs: &Wrongs<W>,
    words: fn(W) -> &'static str,
) -> fmt::Result {
    for (wrong, (times, numbers)) in wrongs {
        write!(out, "\n{times} {}", words(*wrong))?;
        if !numbers.is_empty() {
            write!(out, ", like {numbers:?}")?;
        }
    }
    Ok(())
}
