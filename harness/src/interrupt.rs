//! Ends in good order: by Ctrl-C, or by SIGTERM where a script asks.

/// Comes when this process is asked to end.
///
/// # Errors
/// When signals cannot be listened to.
pub async fn interrupted() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            ended = tokio::signal::ctrl_c() => ended,
            _ = term.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
