//! `smalt check`: whether a store is whole, told without changing it.
//!
//! The files are there, the metadata open, every record can be read, every payload has its bytes,
//! what is counted is counted right, and every index agrees with its records.

mod indexes;
mod records;

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::audit;
use crate::clock::Clock;
use crate::disk::Disk;
use crate::store::{self, Inspected, OpenError, PayloadId, Store, StoreResult, View};

/// Findings of one kind that are told one by one; there may be one for each record.
const TOLD_MAX: usize = 100;

/// What a check found.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The directory.
    pub directory: String,
    /// Whether nothing is wrong.
    pub whole: bool,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What is not wrong and good to know.
    pub notes: Vec<String>,
    /// Records of the operations.
    pub records: u64,
    /// Payloads that were read to their end, and their bytes.
    pub payloads: u64,
    /// Bytes of these payloads.
    pub bytes: u64,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about: `files`, `record`, `payload`, `reference` or `index`.
    pub about: &'static str,
    /// What is wrong, in words.
    pub what: String,
}

/// Findings as they come.
#[derive(Debug, Default)]
struct Findings {
    all: Vec<Finding>,
    /// How many of the current kind were not told.
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

    /// Ends a kind.
    fn end(&mut self, about: &'static str) {
        if self.untold > 0 {
            let what = format!("{} more of this kind", self.untold);
            self.all.push(Finding { about, what });
            self.untold = 0;
        }
    }
}

/// Checks the store in `dir`. A copy of its metadata is made in `scratch`.
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

/// What is wrong with the records of a state, if anything is; its payloads are not read.
///
/// # Errors
/// When the state cannot be read.
pub(crate) fn first(view: &dyn View) -> StoreResult<Option<Finding>> {
    let mut findings = Findings::default();
    records::check(view, &mut findings)?;
    agreement(view, &mut findings)?;
    Ok(findings.all.into_iter().next())
}

/// References are counted right, and indexes agree with their records.
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

/// Reads a payload to its end; its length.
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
