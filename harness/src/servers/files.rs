//! The one place of benchmark, crash test and malformed requests that touches files.
#![expect(
    clippy::disallowed_methods,
    reason = "memory of a process stands in /proc, reports and tables are files"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Resident memory of a process in bytes; `None` where the system does not tell by `/proc`.
pub fn resident_bytes(process_id: u32) -> Option<u64> {
    memory(process_id, "VmRSS:")
}

/// The most resident memory that a process ever had in bytes; `None` where the system does not tell
/// by `/proc`.
pub fn peak_resident_bytes(process_id: u32) -> Option<u64> {
    memory(process_id, "VmHWM:")
}

fn memory(process_id: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Time that a process has spent on processors, its own and the system's for it; `None` where the
/// system does not tell by `/proc`. Its unit is a hundredth of a second.
pub fn cpu_time(process_id: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?;
    // The name may have anything in it; what counts stands behind its bracket.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: Option<Vec<u64>> = ticks.map(|field| field.parse().ok()).collect();
    Some(Duration::from_millis(ticks?.iter().sum::<u64>() * 10))
}

/// Writes a report.
///
/// # Errors
/// When the file cannot be written.
pub fn write_report(path: &Path, json: &str) -> std::io::Result<()> {
    std::fs::write(path, json)
}

/// Reads a file of text.
///
/// # Errors
/// When the file cannot be read.
pub fn text(path: &Path) -> std::io::Result<String> {
    std::fs::read_to_string(path)
}

/// Names and texts of the files of a directory with this extension, in order of their names.
///
/// # Errors
/// When the directory or a file of it cannot be read.
pub fn texts(dir: &Path, extension: &str) -> std::io::Result<Vec<(String, String)>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap_or_default();
        let text = std::fs::read_to_string(&path)?;
        Ok((name.to_string_lossy().into_owned(), text))
    };
    paths.into_iter().map(read).collect()
}
