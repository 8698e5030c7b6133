//! An owner, which makes one call about the message after another, as the listener's owner does.

use smalt_listener::Outcome;
use smalt_listener::handler::Verdict;
use smalt_listener::rules::dispatch::{Ran, Received, Step, decide};
use smalt_listener::rules::done::Finished;

use crate::scene::{Answer, MAX_DEQUEUE, Memory, Mistake, RETRY, Small, State, VISIBILITY};
use crate::service::{Refused, Taken};

/// The state of an owner, with or without a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) phase: Phase,
    /// The newest receipt that it received.
    told: u8,
    /// The receipt that it uses.
    receipt: u8,
    count: u8,
    /// Until then no other owner receives the message.
    valid_until: u8,
    /// Whether an earlier try of the same request may have succeeded.
    unknown: bool,
    pub(crate) last: Option<Outcome>,
}

/// The next activity of an owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    #[default]
    Free,
    Running,
    /// Puts the copy while the lock is valid.
    Poisoning,
    /// Hides the message until its retry.
    Hiding,
    /// Deletes the message for this reason.
    Deleting(After),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum After {
    Success,
    /// The message was finished before.
    Memory,
    Copy,
    /// No reason: a mistake.
    Nothing,
}

/// A step of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Move {
    Get,
    Renew,
    /// The next request of its phase.
    Settle,
    /// The end of its handler.
    Ends(Said),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Said {
    Ok,
    Retry,
    Reject,
}

impl Move {
    /// Returns whether the step is a call to the service.
    pub(crate) fn is_call(self) -> bool {
        !matches!(self, Move::Ends(_))
    }
}

/// Returns the possible steps of an owner. Omits renewals that would change nothing.
pub(crate) fn moves(owner: &Owner, now: u8) -> Vec<Move> {
    match owner.phase {
        Phase::Free => vec![Move::Get],
        Phase::Running => {
            let ends = [Said::Ok, Said::Retry, Said::Reject].map(Move::Ends);
            let renews = now + VISIBILITY > owner.valid_until;
            ends.into_iter()
                .chain(renews.then_some(Move::Renew))
                .collect()
        }
        Phase::Poisoning if now >= owner.valid_until && !owner.unknown => vec![Move::Renew],
        Phase::Poisoning | Phase::Hiding | Phase::Deleting(_) => vec![Move::Settle],
    }
}

impl Owner {
    fn becomes(&mut self, phase: Phase) {
        self.phase = phase;
        self.unknown = false;
    }

    /// Records the outcome; the owner no longer has the message.
    fn ends(&mut self, outcome: Outcome) {
        *self = Owner {
            last: Some(outcome),
            ..Owner::default()
        };
    }

    /// Returns whether to try again after a missing answer: not after the lock expired
    /// (`settle::Attempts`).
    fn again(&mut self, now: u8) -> bool {
        self.unknown = true;
        now < self.valid_until
    }
}

impl State {
    /// Makes the next step of an owner.
    pub(crate) fn step(&mut self, small: &Small, at: usize, next: Move, answer: Answer) {
        if answer != Answer::Arrives {
            self.losses -= 1;
        }
        let (mut owner, process) = (self.owners[at], small.process(at));
        let mut memory = self.memories[process];
        match (next, owner.phase) {
            (Move::Get, _) => self.take(small, &mut owner, &mut memory, answer),
            (Move::Renew, phase) => self.renew(small, &mut owner, phase, answer),
            (Move::Ends(said), _) => self.verdict(small, &mut owner, &mut memory, said),
            (Move::Settle, Phase::Poisoning) => self.poison(small, &mut owner, answer),
            (Move::Settle, Phase::Deleting(after)) => {
                self.acknowledge(small, &mut owner, &mut memory, after, answer);
            }
            (Move::Settle, _) => self.hide(&mut owner, answer),
        }
        self.owners[at] = owner;
        self.memories[process] = memory;
    }

    /// `message::Owner::live`. If the owner makes no step for long, this stands for a late
    /// answer, after which the same steps are possible.
    fn take(&mut self, small: &Small, owner: &mut Owner, memory: &mut Memory, answer: Answer) {
        let taken = match answer {
            Answer::LostBefore => None,
            _ => self.get(),
        };
        let (Some(Taken { receipt, count }), Answer::Arrives) = (taken, answer) else {
            return;
        };
        *owner = Owner {
            told: receipt,
            receipt,
            count,
            valid_until: self.now + VISIBILITY,
            last: owner.last,
            ..Owner::default()
        };
        match decide(&received(small, owner, memory), Ran::NotYet) {
            Step::DeleteAgain => owner.becomes(Phase::Deleting(After::Memory)),
            Step::Poison(_) => {
                self.was_refused = true;
                owner.becomes(self.poisoning(small));
            }
            Step::Run if small.makes(Mistake::DeletesAtReceipt) => {
                owner.becomes(Phase::Deleting(After::Nothing));
            }
            Step::Run => {
                self.wrongs.handled_too_often |= u32::from(count) > MAX_DEQUEUE;
                if small.makes(Mistake::RemembersBeforeTheVerdict) {
                    memory.insert(Finished::Handled);
                }
                owner.becomes(Phase::Running);
            }
            other => unreachable!("{other:?} at the receipt"),
        }
    }

    /// `message::Owner::live` after the run.
    fn verdict(&mut self, small: &Small, owner: &mut Owner, memory: &mut Memory, said: Said) {
        let verdict = match said {
            Said::Ok => Verdict::Ok,
            Said::Retry => Verdict::retry("not yet"),
            Said::Reject => Verdict::reject("never"),
        };
        match decide(&received(small, owner, memory), Ran::Ended(verdict)) {
            Step::Delete => {
                self.is_handled = true;
                memory.insert(Finished::Handled);
                owner.becomes(Phase::Deleting(After::Success));
            }
            Step::Poison(_) => owner.becomes(self.poisoning(small)),
            Step::Retry(..) => owner.becomes(Phase::Hiding),
            other => unreachable!("{other:?} after a run"),
        }
    }

    fn poisoning(&self, small: &Small) -> Phase {
        match small.makes(Mistake::DeletesBeforeTheCopy) && self.copies == 0 {
            true => Phase::Deleting(After::Nothing),
            false => Phase::Poisoning,
        }
    }

    /// `renew::Lock::renew`, while a handler runs or before a copy is put.
    fn renew(&mut self, small: &Small, owner: &mut Owner, phase: Phase, answer: Answer) {
        let holds = self.now < owner.valid_until;
        match self.updated(owner, VISIBILITY, answer) {
            Some(Ok(receipt)) => {
                owner.told = receipt;
                if !small.makes(Mistake::KeepsTheOldReceipt) {
                    owner.receipt = receipt;
                }
                owner.valid_until = self.now + VISIBILITY;
            }
            Some(Err(_)) => owner.ends(Outcome::LostLock),
            // Retried while the lock is valid.
            None if holds && phase == Phase::Running => {}
            None => owner.ends(Outcome::LostLock),
        }
    }

    /// Update Message with the owner's receipt; `None` without an answer.
    fn updated(
        &mut self,
        owner: &Owner,
        visibility: u8,
        answer: Answer,
    ) -> Option<Result<u8, Refused>> {
        self.shows(owner);
        let result = match answer {
            Answer::LostBefore => return None,
            _ => self.update(owner.receipt, visibility),
        };
        (answer == Answer::Arrives).then_some(result)
    }

    fn shows(&mut self, owner: &Owner) {
        self.wrongs.old_receipt_shown |= owner.receipt != owner.told;
    }

    /// `settle::Owner::retry`.
    fn hide(&mut self, owner: &mut Owner, answer: Answer) {
        let earlier = owner.unknown;
        match self.updated(owner, RETRY, answer) {
            Some(Ok(_)) => owner.ends(Outcome::Retried),
            // An earlier try succeeded.
            Some(Err(Refused::Mismatch)) if earlier => owner.ends(Outcome::Retried),
            Some(Err(_)) => owner.ends(Outcome::LostLock),
            None if owner.again(self.now) => {}
            None => owner.ends(Outcome::RetryUnset),
        }
    }

    /// `settle::Owner::put_copy`.
    fn poison(&mut self, small: &Small, owner: &mut Owner, answer: Answer) {
        if self.now >= owner.valid_until {
            // It was waiting for its next try, which would come too late.
            owner.ends(Outcome::PoisonFailed);
            return;
        }
        if answer != Answer::LostBefore {
            self.put_copy();
        }
        if answer == Answer::Arrives || small.makes(Mistake::TakesALostPutForMade) {
            owner.becomes(Phase::Deleting(After::Copy));
        } else {
            owner.unknown = true;
        }
    }

    /// `settle::Owner::delete` and the steps after it.
    fn acknowledge(
        &mut self,
        small: &Small,
        owner: &mut Owner,
        memory: &mut Memory,
        after: After,
        answer: Answer,
    ) {
        self.shows(owner);
        let result = match answer {
            Answer::LostBefore => Ok(()),
            _ => self.delete(owner.receipt),
        };
        if answer != Answer::Arrives && owner.again(self.now) {
            return;
        }
        let is_deleted = match (answer, result) {
            (Answer::Arrives, Ok(())) => Some(true),
            (Answer::Arrives, Err(Refused::NotFound)) => Some(owner.unknown),
            _ => None,
        };
        let is_lost = (answer, result) == (Answer::Arrives, Err(Refused::Mismatch));
        if small.makes(Mistake::DeletesBeforeTheCopy) && after == After::Nothing {
            owner.becomes(Phase::Poisoning);
            return;
        }
        let outcome = match (after, is_deleted) {
            (After::Success | After::Nothing, Some(true)) => Outcome::Done,
            (After::Success | After::Nothing, Some(false)) => Outcome::Gone,
            (After::Success | After::Nothing, None) if is_lost => Outcome::LostLock,
            (After::Success | After::Nothing, None) => Outcome::Unacked,
            (After::Memory, Some(_)) => Outcome::DuplicateDeleted,
            (After::Memory, None) => Outcome::DuplicateKept,
            (After::Copy, Some(_)) => Outcome::Poisoned,
            (After::Copy, None) => Outcome::PoisonedUnacked,
        };
        match outcome {
            Outcome::Done | Outcome::DuplicateDeleted => *memory = Memory::default(),
            Outcome::PoisonedUnacked => memory.insert(Finished::Copied),
            _ => {}
        }
        owner.ends(outcome);
    }
}

/// Returns what the decision is made from.
fn received(small: &Small, owner: &Owner, memory: &Memory) -> Received {
    Received {
        finished_before: memory.is_some(),
        dequeue_count: u32::from(owner.count),
        max_dequeue: most(small),
        ..Received::default()
    }
}

fn most(small: &Small) -> u32 {
    match small.makes(Mistake::RunsWhateverTheCount) {
        true => u32::MAX - 1,
        false => MAX_DEQUEUE,
    }
}
