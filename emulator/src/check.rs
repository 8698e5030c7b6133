//! `smalt check`: checks a store without changing it.
//!
//! It checks that the files exist, the metadata opens, every record and every payload can be read,
//! reference counts are right, and every index agrees with its records.

mod indexes;
mod records;

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::audit;
use crate::clock::Clock;
use crate::disk::Disk;
use crate::store::{self, Inspected, OpenError, PayloadId, Store, StoreResult, View};

/// Findings of one kind that are listed one by one; there may be one for each record.
const TOLD_MAX: usize = 100;

/// The result of a check.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The directory of the store.
    pub directory: String,
    /// Whether there are no findings.
    pub whole: bool,
    /// Everything that is wrong.
    pub findings: Vec<Finding>,
    /// Remarks that are not errors.
    pub notes: Vec<String>,
    /// Number of records of the operations.
    pub records: u64,
    /// Number of payloads that were read to their end.
    pub payloads: u64,
    /// Total bytes of these payloads.
    pub bytes: u64,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The area: `files`, `record`, `payload`, `reference` or `index`.
    pub about: &'static str,
    /// A description for people.
    pub what: String,
}

#[derive(Debug, Default)]
struct Findings {
    all: Vec<Finding>,
    /// Findings of the current kind beyond [`TOLD_MAX`].
    untold: usize,
}

impl Findings {
    fn add(&mut self, about: &'static str, what: String) {
        let told = self.all.iter().rev().take_while(|f| f.about == about);
        if told.count() < TOLD_MAX {
            self.all.push(Finding { about, what });
        } else {
            self.untold += 1;
        }
    }

    /// Ends a kind: adds the number of findings that were left out.
    fn end(&mut self, about: &'static str) {
        if self.untold > 0 {
            let what = format!("{} more of this kind", self.untold);
            self.all.push(Finding { about, what });
            self.untold = 0;
        }
    }
}

/// Checks the store in `dir`. Copies its metadata to `scratch` first.
///
/// # Errors
/// When there is no store, it is in use, or its files cannot be read.
pub fn check(dir: &Path, scratch: &Path, disk: &Arc<dyn Disk>) -> Result<Report, OpenError> {
    let inspected = Inspected::open(dir, scratch, disk, Clock::system())?;
    let mut report = Report {
        directory: dir.display().to_string(),
        notes: inspected.notes,
        ..Report::default()
    };
    let mut findings = Findings::default();
    for what in inspected.findings {
        findings.add("files", what);
    }
    findings.end("files");
    if let Some(store) = &inspected.store
        && let Err(error) = look(store, &mut report, &mut findings)
    {
        findings.add("files", error.to_string());
    }
    report.findings = findings.all;
    report.whole = report.findings.is_empty();
    Ok(report)
}

fn look(store: &Store, report: &mut Report, findings: &mut Findings) -> StoreResult<()> {
    report.records = store.read(|view| records::check(view, findings))?;
    findings.end("record");
    for id in store.read(store::references)?.into_keys() {
        match payload(store, id) {
            Ok(bytes) => {
                report.payloads += 1;
                report.bytes += bytes;
            }
            Err(error) => findings.add("payload", format!("payload {}: {error}", id.0)),
        }
    }
    findings.end("payload");
    store.read(|view| agreement(view, findings))
}

/// Returns the first error in the records of a state, or `None`. Does not read payloads.
///
/// # Errors
/// When the state cannot be read.
pub(crate) fn first(view: &dyn View) -> StoreResult<Option<Finding>> {
    let mut findings = Findings::default();
    records::check(view, &mut findings)?;
    agreement(view, &mut findings)?;
    Ok(findings.all.into_iter().next())
}

fn agreement(view: &dyn View, findings: &mut Findings) -> StoreResult<()> {
    for what in store::disagreements(view)? {
        findings.add("reference", what);
    }
    for what in audit::audit(view)?.differences {
        findings.add("reference", what);
    }
    findings.end("reference");
    indexes::check(view, findings)?;
    findings.end("index");
    Ok(())
}

/// Reads a payload to its end and returns its length in bytes.
fn payload(store: &Store, id: PayloadId) -> StoreResult<u64> {
    let payload = store.read(|view| store::location(view, id))?;
    let mut reader = store.payload(&payload, 0..payload.len());
    while reader.next_chunk()?.is_some() {}
    Ok(payload.len())
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for Finding { about, what } in &self.findings {
            writeln!(f, "{about}: {what}")?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        let told = if self.whole { "whole" } else { "not whole" };
        write!(
            f,
            "{} is {told}: {} records, {} payloads of {} bytes read, {} findings",
            self.directory,
            self.records,
            self.payloads,
            self.bytes,
            self.findings.len()
        )
    }
}
