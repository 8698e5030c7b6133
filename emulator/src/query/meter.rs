//! Limits on the cost of a query, counted in steps and bytes rather than seconds, so that the same
//! query of the same blob ends at the same place on every machine.

use std::cell::Cell;

use smalt_protocol::limits::MIB;

use super::value::{Fault, Value};

/// Maximum steps for one record, about one per byte examined. The limit is the emulator's own: the
/// longest record can be read 64 times, in about two seconds.
const RECORD_STEPS_MAX: u64 = 1 << 30;
/// Maximum steps of a query per MiB that it has read: about two minutes. "Setting timeouts for Blob
/// service operations": reads "are permitted 2 minutes per megabyte".
const MIB_STEPS_MAX: u64 = 1 << 36;
/// Maximum bytes that one record may produce, in function results and result rows. The limit is the
/// emulator's own: four times the longest record.
const RECORD_MADE_BYTES_MAX: u64 = 64 * MIB;
/// Steps of one expression, in addition to those for the bytes of its value.
const EXPRESSION_STEPS: usize = 32;

/// Counts the cost of the records of a query.
#[derive(Debug)]
pub struct Meter {
    most: u64,
    /// Steps of all previous records.
    before: Cell<u64>,
    steps: Cell<u64>,
    /// Bytes that the current record has produced.
    made: Cell<u64>,
}

impl Default for Meter {
    fn default() -> Self {
        Meter::of(RECORD_STEPS_MAX)
    }
}

impl Meter {
    /// Creates a meter that allows `most` steps per record.
    pub fn of(most: u64) -> Self {
        Meter {
            most,
            before: Cell::new(0),
            steps: Cell::new(0),
            made: Cell::new(0),
        }
    }

    /// Returns the steps of all records so far.
    pub fn steps(&self) -> u64 {
        self.before.get() + self.steps.get()
    }

    /// Starts a record that ends at offset `scanned` of the blob.
    ///
    /// # Errors
    /// [`Fault::TimedOut`] if the previous records have exceeded the steps for that many bytes.
    pub fn next_record(&self, scanned: u64) -> Result<(), Fault> {
        self.before.set(self.steps());
        self.steps.set(0);
        self.made.set(0);
        if self.before.get() > MIB_STEPS_MAX.saturating_mul(1 + scanned / MIB) {
            return Err(Fault::TimedOut);
        }
        Ok(())
    }

    /// Counts steps.
    ///
    /// # Errors
    /// [`Fault::TimedOut`] if the record has exceeded its steps.
    pub fn step(&self, steps: usize) -> Result<(), Fault> {
        let steps = self.steps.get().saturating_add(steps as u64);
        self.steps.set(steps);
        if steps > self.most {
            return Err(Fault::TimedOut);
        }
        Ok(())
    }

    /// Counts bytes that are held until the record ends.
    ///
    /// # Errors
    /// [`Fault::TooLarge`] if the record has produced too many bytes.
    pub fn make(&self, bytes: usize) -> Result<(), Fault> {
        let made = self.made.get().saturating_add(bytes as u64);
        self.made.set(made);
        if made > RECORD_MADE_BYTES_MAX {
            return Err(Fault::TooLarge);
        }
        Ok(())
    }

    /// Counts an expression and its value.
    ///
    /// # Errors
    /// As [`Meter::step`].
    pub fn expression(&self, value: &Value<'_>) -> Result<(), Fault> {
        self.step(EXPRESSION_STEPS.saturating_add(value.text_bytes()))
    }

    /// Counts the bytes of a string that was created for the record.
    ///
    /// # Errors
    /// As [`Meter::make`].
    pub fn made(&self, value: &Value<'_>) -> Result<(), Fault> {
        match value {
            Value::Text(std::borrow::Cow::Owned(text)) => self.make(text.len()),
            _ => Ok(()),
        }
    }
}
