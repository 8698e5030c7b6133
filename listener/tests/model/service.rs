//! The service: the effect of each call on the one message.

use crate::scene::{State, VISIBILITY};

/// Why a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    NotFound,
    Mismatch,
}

/// The message as returned by a get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) receipt: u8,
    pub(crate) count: u8,
}

impl State {
    /// Get Messages; `None` for an empty answer.
    pub(crate) fn get(&mut self) -> Option<Taken> {
        let now = self.now;
        let message = self.message.as_mut().filter(|m| m.visible_at <= now)?;
        self.receipt += 1;
        message.receipt = self.receipt;
        message.visible_at = now + VISIBILITY;
        message.count += 1;
        Some(Taken {
            receipt: message.receipt,
            count: message.count,
        })
    }

    /// Update Message; returns the new receipt. A receipt whose visibility timeout has ended stays
    /// valid until another owner receives the message.
    pub(crate) fn update(&mut self, receipt: u8, visibility: u8) -> Result<u8, Refused> {
        let message = self.message.as_mut().ok_or(Refused::NotFound)?;
        if message.receipt != receipt {
            return Err(Refused::Mismatch);
        }
        self.receipt += 1;
        message.receipt = self.receipt;
        message.visible_at = self.now + visibility;
        Ok(message.receipt)
    }

    /// Delete Message.
    pub(crate) fn delete(&mut self, receipt: u8) -> Result<(), Refused> {
        let message = self.message.ok_or(Refused::NotFound)?;
        if message.receipt != receipt {
            return Err(Refused::Mismatch);
        }
        self.message = None;
        self.wrongs.deleted_unhandled |= !self.is_handled && self.copies == 0;
        Ok(())
    }

    /// Put Message into the poison queue.
    pub(crate) fn put_copy(&mut self) {
        // More copies would only add equivalent states.
        self.copies = (self.copies + 1).min(2);
    }
}
