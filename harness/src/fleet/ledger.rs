//! What is noted while a fleet runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::account::{Evidence, Number};

/// What the text of a message begins with.
const PREFIX: &str = "fleet ";

/// The notes, shared by all who make some.
#[derive(Debug, Default)]
pub struct Ledger {
    /// One in so many messages is never taken; 0 for none.
    poison_every: u64,
    evidence: Mutex<Evidence>,
}

/// The text of a message.
pub fn text(number: Number) -> String {
    format!("{PREFIX}{number}")
}

fn number(text: &str) -> Option<Number> {
    text.strip_prefix(PREFIX)?.parse().ok()
}

impl Ledger {
    /// Nothing yet.
    pub fn new(poison_every: u64) -> Self {
        Ledger {
            poison_every,
            evidence: Mutex::default(),
        }
    }

    fn notes(&self) -> MutexGuard<'_, Evidence> {
        self.evidence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the handler never takes this message.
    pub fn is_poison(&self, number: Number) -> bool {
        // Not the first ones of the queue, nor the last.
        self.poison_every > 0 && number % self.poison_every == self.poison_every / 2
    }

    /// A put, acknowledged or of unknown outcome.
    pub fn note_put(&self, number: Number, is_known: bool) {
        let mut notes = self.notes();
        if self.is_poison(number) {
            notes.poison.insert(number);
        }
        if is_known {
            notes.put.insert(number);
        } else {
            notes.unsure.insert(number);
        }
    }

    /// A message in the handler's hands; whether it is done.
    pub fn handle(&self, text: &str) -> bool {
        let mut notes = self.notes();
        let Some(number) = number(text) else {
            notes.foreign.push(text.to_owned());
            return true;
        };
        if self.is_poison(number) {
            *notes.refused.entry(number).or_default() += 1;
            return false;
        }
        *notes.done.entry(number).or_default() += 1;
        true
    }

    /// A message of the poison queue, by the text that it had.
    pub fn note_quarantined(&self, text: &str) {
        let mut notes = self.notes();
        match number(text) {
            Some(number) => *notes.quarantined.entry(number).or_default() += 1,
            None => notes.foreign.push(text.to_owned()),
        }
    }

    /// A process that ended without having been killed.
    pub fn note_ended(&self) {
        self.notes().ended += 1;
    }

    /// Messages that are done, and refusals: while these grow, something goes on.
    pub fn progress(&self) -> (u64, u64) {
        let notes = self.notes();
        let times: u64 = notes.done.values().chain(notes.refused.values()).sum();
        (notes.done.len() as u64, times)
    }

    /// All of it, with so many messages left in the queue.
    pub fn close(&self, left: u64) -> Evidence {
        Evidence {
            left,
            ..self.notes().clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::account::{Account, Wrong};

    #[test]
    fn notes_make_an_account() {
        let ledger = Ledger::new(4);
        (0..8).for_each(|number| ledger.note_put(number, true));
        for number in 0..8 {
            assert_eq!(ledger.handle(&text(number)), ![2, 6].contains(&number));
        }
        ledger.handle(&text(7));
        assert_eq!(ledger.progress(), (6, 9));
        ledger.note_quarantined(&text(2));
        let account = Account::of(&ledger.close(0));
        assert_eq!((account.done, account.doubled), (6, 1));
        assert_eq!(account.wrong[&Wrong::Lost], (1, vec![6]));
        ledger.note_quarantined(&text(6));
        assert!(Account::of(&ledger.close(0)).is_clean());
        ledger.handle("somebody else's");
        assert!(!Account::of(&ledger.close(0)).is_clean());
    }
}
