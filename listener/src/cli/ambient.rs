//! What commands read from the machine besides settings, secrets and seeds: message bodies in
//! files, whether a program exists, processor time.

use anyhow::Context;

/// Reads a file.
///
/// # Errors
/// The file cannot be read; the error names it.
pub(super) async fn bytes(path: &str) -> anyhow::Result<Vec<u8>> {
    tokio::fs::read(path).await.with_context(|| path.to_owned())
}

/// Returns whether the path is an executable file.
#[cfg(unix)]
pub(super) fn is_program(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    /// The execute bits of owner, group and others.
    const EXECUTE: u32 = 0o111;
    let facts = std::fs::metadata(path);
    facts.is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & EXECUTE != 0)
}

/// Returns whether the path is a file.
#[cfg(not(unix))]
pub(super) fn is_program(path: &std::path::Path) -> bool {
    path.is_file()
}

/// Returns the processor time of this process so far, or `None` if the system does not report it.
#[cfg(unix)]
pub(super) fn cpu_time() -> Option<std::time::Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u32::try_from(time.tv_nsec).ok()?;
    Some(std::time::Duration::new(seconds, nanos))
}

/// Returns the processor time of this process so far, or `None` if the system does not report it.
#[cfg(not(unix))]
pub(super) fn cpu_time() -> Option<std::time::Duration> {
    None
}
