//! The command `harness record`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::ProgressBar;
use smalt_protocol::Service;
use tokio::net::TcpListener;

use super::proxy::{Log, Proxy};
use super::scrub::{self, About};
use crate::check::exit_code;
use crate::interrupt::interrupted;
use crate::replay::corpus;
use crate::wire::endpoint::Endpoint;

/// Options of `harness record`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Endpoint of the service to record, such as `http://127.0.0.1:10000` or
    /// `https://account.blob.core.windows.net`.
    #[arg(long, value_name = "URL")]
    pub target: String,
    /// Address for clients to connect to; with port 0 the system picks a free port, which is
    /// printed.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// File to write the trace to.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Kind of the service: blob, queue or table.
    #[arg(long, default_value = "blob", value_parser = corpus::service)]
    pub service: Service,
    /// Name of the service, stored in the trace.
    #[arg(long, default_value = "smalt", value_name = "NAME")]
    pub name: String,
    /// Seed of the client, stored in the trace.
    #[arg(long)]
    pub seed: Option<u64>,
}

/// Records until it is interrupted, then writes the trace.
///
/// # Errors
/// When the target or the address cannot be used, nothing was recorded, or the file cannot be
/// written.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let upstream = Endpoint::at(&options.target)?;
    let about = About {
        service: options.service,
        target: options.name.clone(),
        recorded_at: smalt::Clock::system().now().iso_ticks(),
        authority: upstream.authority.clone(),
        seed: options.seed,
    };
    let listener = TcpListener::bind(options.listen).await?;
    println!(
        "recording {} at http://{}",
        options.target,
        listener.local_addr()?
    );
    let bar = ProgressBar::new_spinner();
    let shown = bar.clone();
    let proxy = Proxy::new(upstream, move |line| {
        shown.inc(1);
        shown.set_message(line.split('?').next().unwrap_or_default().to_owned());
    });
    tokio::select! {
        () = std::sync::Arc::clone(&proxy).serve(listener) => {}
        asked = interrupted() => asked?,
    }
    bar.finish_and_clear();
    written(options, &about, proxy.log())
}

/// Writes the trace, and prints what it contains and what could not be recorded.
fn written(options: &Options, about: &About, log: Log) -> anyhow::Result<ExitCode> {
    for one in &log.lost {
        eprintln!("not recorded: {one}");
    }
    let out = options.out.display();
    anyhow::ensure!(
        !log.is_empty(),
        "no exchange was recorded, so {out} was not written"
    );
    let answered: Vec<String> = (1..=5)
        .map(|hundred| (hundred, log.answered(hundred)))
        .filter(|(_, count)| *count > 0)
        .map(|(hundred, count)| format!("{count} x {hundred}xx"))
        .collect();
    let (count, is_whole) = (log.len(), log.lost.is_empty());
    let trace = scrub::trace(about, &log.ordered());
    corpus::write(&options.out, &trace.write()?)?;
    println!("{count} exchanges ({}) in {out}", answered.join(", "));
    Ok(exit_code(is_whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trace without exchanges would pass every replay.
    #[test]
    fn empty_recording_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            target: "http://127.0.0.1:1".to_owned(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            out: dir.path().join("trace.ndjson"),
            service: Service::Blob,
            name: "smalt".to_owned(),
            seed: None,
        };
        let about = About {
            service: Service::Blob,
            target: "smalt".to_owned(),
            recorded_at: "2026-01-01T00:00:00Z".to_owned(),
            authority: "127.0.0.1:1".to_owned(),
            seed: None,
        };
        let error = written(&options, &about, Log::default()).unwrap_err();
        assert!(error.to_string().contains("trace.ndjson was not written"));
        assert!(!options.out.exists());
    }
}
