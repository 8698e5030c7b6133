//! What the command takes from this machine beside settings and secrets, whose module is
//! `config::secret`: a seed, and files with the bodies of messages.

use anyhow::Context;

/// A seed that no other start of the command has, so that workers started together spread out.
///
/// # Errors
/// The system gives no randomness.
pub(super) fn seed() -> anyhow::Result<u64> {
    getrandom::u64().map_err(|error| anyhow::anyhow!("no seed: {error}"))
}

/// The bytes of a file.
///
/// # Errors
/// It cannot be read; the error names it.
pub(super) async fn bytes(path: &str) -> anyhow::Result<Vec<u8>> {
    tokio::fs::read(path).await.with_context(|| path.to_owned())
}
