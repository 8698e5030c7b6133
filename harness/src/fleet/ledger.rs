//! The ledger of a run: facts that are recorded while a fleet runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::account::{Evidence, Number};

/// Prefix of the text of a message.
const PREFIX: &str = "fleet ";

/// The ledger, which several tasks share.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The handler never accepts one in this many messages; 0 for none.
    poison_every: u64,
    evidence: Mutex<Evidence>,
}

/// Returns the text of a message.
pub fn text(number: Number) -> String {
    format!("{PREFIX}{number}")
}

fn number(text: &str) -> Option<Number> {
    text.strip_prefix(PREFIX)?.parse().ok()
}

impl Ledger {
    /// Creates an empty ledger.
    pub fn new(poison_every: u64) -> Self {
        Ledger {
            poison_every,
            evidence: Mutex::default(),
        }
    }

    fn notes(&self) -> MutexGuard<'_, Evidence> {
        self.evidence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the handler never accepts this message.
    pub fn is_poison(&self, number: Number) -> bool {
        // Neither the first messages of the queue nor the last.
        self.poison_every > 0 && number % self.poison_every == self.poison_every / 2
    }

    /// Records a put, whose outcome may be unknown.
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

    /// Records a message at the handler. Returns whether it is done.
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

    /// Records a message of the poison queue, by its original text.
    pub fn note_quarantined(&self, text: &str) {
        let mut notes = self.notes();
        match number(text) {
            Some(number) => *notes.quarantined.entry(number).or_default() += 1,
            None => notes.foreign.push(text.to_owned()),
        }
    }

    /// Records a process that ended without being killed.
    pub fn note_ended(&self) {
        self.notes().ended += 1;
    }

    /// Returns the numbers of done messages and of rejections: the fleet makes progress while these
    /// grow.
    pub fn progress(&self) -> (u64, u64) {
        let notes = self.notes();
        let times: u64 = notes.done.values().chain(notes.refused.values()).sum();
        (notes.done.len() as u64, times)
    }

    /// Returns all facts; `left` is the number of messages in the queue.
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
