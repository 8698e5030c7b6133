//! What answering costs: counted in steps and bytes, not in seconds, so that the same query of the
//! same blob ends at the same place on every machine.

use std::cell::Cell;

use smalt_protocol::limits::MIB;

use super::value::{Fault, Value};

/// Steps that one record may take, one for about each byte that is looked at: ours. The longest
/// record can be read 64 times, in about two seconds.
const RECORD_STEPS_MAX: u64 = 1 << 30;
/// Steps that a query may take for each MiB of the blob that it has read: about two minutes.
/// "Setting timeouts for Blob service operations": reads "are permitted 2 minutes per megabyte".
const MIB_STEPS_MAX: u64 = 1 << 36;
/// Bytes that one record may make, in texts that functions return and in rows of the answer: ours.
/// The longest record can be answered twice over.
const RECORD_MADE_BYTES_MAX: u64 = 64 * MIB;
/// Steps of one expression, besides those for the bytes of its value.
const EXPRESSION_STEPS: usize = 32;

/// Counts what the records of a query cost.
#[derive(Debug)]
pub struct Meter {
    /// [`RECORD_STEPS_MAX`].
    most: u64,
    /// Steps of the records before the present one.
    before: Cell<u64>,
    /// Steps of the present record.
    steps: Cell<u64>,
    /// Bytes that the present record has made.
    made: Cell<u64>,
}

impl Default for Meter {
    fn default() -> Self {
        Meter::of(RECORD_STEPS_MAX)
    }
}

impl Meter {
    /// A meter that gives each record so many steps.
    pub fn of(most: u64) -> Self {
        Meter {
            most,
            before: Cell::new(0),
            steps: Cell::new(0),
            made: Cell::new(0),
        }
    }

    /// Steps of all records so far.
    pub fn steps(&self) -> u64 {
        self.before.get() + self.steps.get()
    }

    /// Begins a record that ends behind this many bytes of the blob.
    ///
    /// # Errors
    /// [`Fault::TimedOut`] when the records so far have taken more than that many bytes may.
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
    /// [`Fault::TimedOut`] when the record has taken too many.
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
    /// [`Fault::TooLarge`] when the record has made too many.
    pub fn make(&self, bytes: usize) -> Result<(), Fault> {
        let made = self.made.get().saturating_add(bytes as u64);
        self.made.set(made);
        if made > RECORD_MADE_BYTES_MAX {
            return Err(Fault::TooLarge);
        }
        Ok(())
    }

    /// Counts an expression with its value.
    ///
    /// # Errors
    /// As [`Meter::step`].
    pub fn expression(&self, value: &Value<'_>) -> Result<(), Fault> {
        self.step(EXPRESSION_STEPS.saturating_add(value.text_bytes()))
    }

    /// Counts the bytes of a text that was made for the record.
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
