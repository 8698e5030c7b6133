//! What the command takes from this machine beside settings, secrets and seeds: files with the
//! bodies of messages, whether a program is there, processor time.

use anyhow::Context;

/// The bytes of a file.
///
/// # Errors
/// It cannot be read; the error names it.
pub(super) async fn bytes(path: &str) -> anyhow::Result<Vec<u8>> {
    tokio::fs::read(path).await.with_context(|| path.to_owned())
}

/// Whether there is a file that may be executed.
#[cfg(unix)]
pub(super) fn is_program(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    /// Anybody's permission to execute.
    const EXECUTE: u32 = 0o111;
    let facts = std::fs::metadata(path);
    facts.is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & EXECUTE != 0)
}

/// Whether there is a file.
#[cfg(not(unix))]
pub(super) fn is_program(path: &std::path::Path) -> bool {
    path.is_file()
}

/// Processor time of this process so far, where the system tells it.
#[cfg(unix)]
pub(super) fn cpu_time() -> Option<std::time::Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u32::try_from(time.tv_nsec).ok()?;
    Some(std::time::Duration::new(seconds, nanos))
}

/// Processor time of this process so far, where the system tells it.
#[cfg(not(unix))]
pub(super) fn cpu_time() -> Option<std::time::Duration> {
    None
}
