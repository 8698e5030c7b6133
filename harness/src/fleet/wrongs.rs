//! The errors of a run: how often each happened, and to which numbers.

use std::collections::BTreeMap;
use std::fmt;

/// Most numbers that are listed for one kind of error.
const NAMED_MAX: usize = 10;

/// How often each error happened, and the first numbers to which it happened.
pub type Wrongs<W> = BTreeMap<W, (u64, Vec<u64>)>;

/// Records an error that happened `times` times, among others to these numbers.
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

/// Writes one line for each kind of error.
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
