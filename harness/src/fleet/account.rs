//! The account of a run: derives the errors from what was put, handled, quarantined and left.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::wrongs::{self, Wrongs};

/// Number of a message, at the end of its text.
pub type Number = u64;

/// The facts about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Messages whose put was acknowledged.
    pub put: BTreeSet<Number>,
    /// Messages whose put has no known outcome: they may or may not exist.
    pub unsure: BTreeSet<Number>,
    /// Messages that the handler never accepts.
    pub poison: BTreeSet<Number>,
    /// How often the handler accepted each message.
    pub done: BTreeMap<Number, u64>,
    /// How often the handler rejected each message.
    pub refused: BTreeMap<Number, u64>,
    /// How often each message is in the poison queue.
    pub quarantined: BTreeMap<Number, u64>,
    /// Number of messages that are still in the queue, including hidden ones.
    pub left: u64,
    /// Texts that this run did not put.
    pub foreign: Vec<String>,
    /// Number of processes that ended without being killed.
    pub ended: u64,
}

/// A kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrong {
    /// Put, and neither accepted nor in the poison queue.
    Lost,
    /// Still in the queue after the patience ran out.
    Left,
    /// A poison message that was accepted.
    PoisonDone,
    /// Handled or quarantined, although nobody put it.
    Unexpected,
    /// A process ended by itself.
    Ended,
}

impl Wrong {
    const fn words(self) -> &'static str {
        match self {
            Wrong::Lost => "lost: put, but neither done nor in the poison queue",
            Wrong::Left => "left in the queue",
            Wrong::PoisonDone => "poison, but done",
            Wrong::Unexpected => "never put",
            Wrong::Ended => "processes that ended by themselves",
        }
    }
}

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Number of messages put.
    pub put: usize,
    /// Number of messages that were accepted.
    pub done: usize,
    /// Number of times that a message was accepted again.
    pub doubled: u64,
    /// Number of poison messages in the poison queue.
    pub quarantined: usize,
    /// Number of copies in the poison queue beyond the first.
    pub quarantined_again: u64,
    /// Number of messages in the poison queue that the handler would have accepted: their listeners
    /// died too often.
    pub innocent: usize,
    /// How often each error happened, and the first messages of each.
    pub wrong: Wrongs<Wrong>,
}

impl Account {
    /// Accounts for the facts of a run.
    pub fn of(evidence: &Evidence) -> Self {
        let mut account = Account {
            put: evidence.put.len(),
            done: evidence.done.len(),
            doubled: beyond_first(&evidence.done),
            quarantined_again: beyond_first(&evidence.quarantined),
            ..Account::default()
        };
        for number in evidence.quarantined.keys() {
            if evidence.poison.contains(number) {
                account.quarantined += 1;
            } else {
                account.innocent += 1;
            }
        }
        let has_end = |number: &Number| {
            evidence.done.contains_key(number) || evidence.quarantined.contains_key(number)
        };
        // A message that is left in the queue is not lost; only their number distinguishes them.
        let missing = evidence.put.iter().filter(|number| !has_end(number));
        let missing: Vec<Number> = missing.copied().collect();
        let left = usize::try_from(evidence.left).unwrap_or(usize::MAX);
        let lost = missing.len().saturating_sub(left);
        account.find(Wrong::Lost, lost as u64, missing);
        account.find(Wrong::Left, evidence.left, Vec::new());
        let done = evidence.done.keys().copied();
        account.find_all(
            Wrong::PoisonDone,
            done.filter(|n| evidence.poison.contains(n)),
        );
        let known =
            |number: &Number| evidence.put.contains(number) || evidence.unsure.contains(number);
        let seen: BTreeSet<Number> = evidence
            .done
            .keys()
            .chain(evidence.refused.keys())
            .chain(evidence.quarantined.keys())
            .copied()
            .collect();
        account.find_all(Wrong::Unexpected, seen.into_iter().filter(|n| !known(n)));
        account.find(Wrong::Unexpected, evidence.foreign.len() as u64, Vec::new());
        account.find(Wrong::Ended, evidence.ended, Vec::new());
        account
    }

    /// Whether there is no error.
    pub fn is_clean(&self) -> bool {
        self.wrong.is_empty()
    }

    fn find_all(&mut self, wrong: Wrong, numbers: impl Iterator<Item = Number>) {
        let numbers: Vec<Number> = numbers.collect();
        self.find(wrong, numbers.len() as u64, numbers);
    }

    fn find(&mut self, wrong: Wrong, times: u64, numbers: Vec<Number>) {
        wrongs::note(&mut self.wrong, wrong, times, numbers);
    }
}

fn beyond_first(times: &BTreeMap<Number, u64>) -> u64 {
    times.values().map(|times| times.saturating_sub(1)).sum()
}

impl fmt::Display for Account {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} put, {} done ({} repeated), {} poison in quarantine ({} extra copies), \
             {} given up because their listeners died",
            self.put,
            self.done,
            self.doubled,
            self.quarantined,
            self.quarantined_again,
            self.innocent
        )?;
        if self.is_clean() {
            return write!(out, "; none lost");
        }
        wrongs::write(out, &self.wrong, Wrong::words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A correct run of this many messages, of which every tenth is poison.
    fn clean(messages: u64) -> Evidence {
        let put: BTreeSet<Number> = (0..messages).collect();
        let is_poison = |number: &Number| number.is_multiple_of(10);
        let poison: BTreeSet<Number> = put.iter().copied().filter(is_poison).collect();
        Evidence {
            done: put.difference(&poison).map(|n| (*n, 1)).collect(),
            refused: poison.iter().map(|n| (*n, 5)).collect(),
            quarantined: poison.iter().map(|n| (*n, 1)).collect(),
            put,
            poison,
            ..Evidence::default()
        }
    }

    fn wrongs(evidence: &Evidence) -> Vec<(Wrong, u64)> {
        let account = Account::of(evidence);
        let counted = account.wrong.iter();
        counted
            .map(|(wrong, (times, _))| (*wrong, *times))
            .collect()
    }

    #[test]
    fn a_run_in_order_is_clean() {
        let account = Account::of(&clean(100));
        assert!(account.is_clean());
        assert_eq!(
            (account.put, account.done, account.quarantined),
            (100, 90, 10)
        );
        assert!(account.to_string().ends_with("none lost"));
    }

    #[test]
    fn a_message_that_nobody_saw_is_lost() {
        let mut evidence = clean(100);
        evidence.done.remove(&7);
        assert_eq!(wrongs(&evidence), [(Wrong::Lost, 1)]);
        assert!(Account::of(&evidence).to_string().contains("like [7]"));
        // An attempt does not complete a message.
        evidence.refused.insert(7, 3);
        assert_eq!(wrongs(&evidence), [(Wrong::Lost, 1)]);
    }

    #[test]
    fn poison_that_is_not_in_quarantine_is_lost() {
        let mut evidence = clean(100);
        evidence.quarantined.remove(&20);
        assert_eq!(wrongs(&evidence), [(Wrong::Lost, 1)]);
    }

    #[test]
    fn every_other_error_is_found() {
        type Doctor = fn(&mut Evidence);
        let cases: [(Doctor, (Wrong, u64)); 5] = [
            (|e| _ = e.done.insert(20, 1), (Wrong::PoisonDone, 1)),
            (|e| _ = e.done.insert(1_000, 1), (Wrong::Unexpected, 1)),
            (|e| e.foreign.push("x".to_owned()), (Wrong::Unexpected, 1)),
            (|e| e.ended = 2, (Wrong::Ended, 2)),
            (|e| e.left = 3, (Wrong::Left, 3)),
        ];
        for (doctor, expected) in cases {
            let mut evidence = clean(100);
            doctor(&mut evidence);
            assert_eq!(wrongs(&evidence), [expected]);
        }
    }

    /// Messages that are still in the queue are left, not lost; all others that are missing are
    /// lost.
    #[test]
    fn left_messages_are_not_lost() {
        let mut evidence = clean(100);
        for number in [1, 2, 3] {
            evidence.done.remove(&number);
        }
        evidence.left = 2;
        assert_eq!(wrongs(&evidence), [(Wrong::Lost, 1), (Wrong::Left, 2)]);
    }

    #[test]
    fn doubles_and_innocents_are_counted_and_allowed() {
        let mut evidence = clean(100);
        evidence.done.insert(7, 4);
        evidence.quarantined.insert(10, 2);
        evidence.done.remove(&8);
        evidence.quarantined.insert(8, 1);
        let account = Account::of(&evidence);
        assert!(account.is_clean(), "{account}");
        let counted = (account.doubled, account.quarantined_again, account.innocent);
        assert_eq!(counted, (3, 1, 1));
    }

    #[test]
    fn a_put_of_unknown_outcome_may_be_there_or_not() {
        let mut evidence = clean(100);
        evidence.unsure.extend([200, 201]);
        evidence.done.insert(200, 1);
        assert!(Account::of(&evidence).is_clean());
    }

    proptest! {
        /// It misses exactly what is taken away.
        #[test]
        fn as_many_are_lost_as_were_taken_away(
            taken in proptest::collection::btree_set(0_u64..200, 0..50),
        ) {
            let mut evidence = clean(200);
            for number in &taken {
                evidence.done.remove(number);
                evidence.quarantined.remove(number);
            }
            let lost = Account::of(&evidence).wrong.get(&Wrong::Lost).map_or(0, |found| found.0);
            prop_assert_eq!(lost, taken.len() as u64);
        }
    }
}
