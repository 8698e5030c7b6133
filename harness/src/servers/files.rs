//! All file access of the benchmark and of cases.
#![expect(
    clippy::disallowed_methods,
    reason = "the memory of a process is in /proc; tables are files"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns the resident memory of a process in bytes; `None` on systems without `/proc`.
pub fn resident_bytes(process_id: u32) -> Option<u64> {
    memory(process_id, "VmRSS:")
}

/// Returns the peak resident memory of a process in bytes; `None` on systems without `/proc`.
pub fn peak_resident_bytes(process_id: u32) -> Option<u64> {
    memory(process_id, "VmHWM:")
}

fn memory(process_id: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Returns the processor time of a process, user and system, in steps of 10 ms; `None` on systems
/// without `/proc`.
pub fn cpu_time(process_id: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?;
    // The process name may contain any character, so the fields start after its closing
    // parenthesis.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: Option<Vec<u64>> = ticks.map(|field| field.parse().ok()).collect();
    Some(Duration::from_millis(ticks?.iter().sum::<u64>() * 10))
}

/// Reads a file of text.
pub fn text(path: &Path) -> std::io::Result<String> {
    std::fs::read_to_string(path)
}

/// Returns names and contents of the files in a directory with this extension, ordered by name.
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
