//! The one place of benchmark, crash test and malformed requests that touches files.
#![expect(
    clippy::disallowed_methods,
    reason = "memory of a process stands in /proc, reports and tables are files"
)]

use std::path::{Path, PathBuf};

/// Resident memory of a process in bytes; `None` where the system does not tell by `/proc`.
pub fn resident_bytes(process_id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
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
