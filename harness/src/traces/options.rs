//! The command `harness record`.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget};
use smalt_protocol::Service;
use tokio::net::TcpListener;

use super::proxy::Proxy;
use super::scrub::{self, About};
use super::upstream::Upstream;
use crate::interrupt::interrupted;
use crate::replay::corpus;

/// Options of `harness record`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The service to record: `http://127.0.0.1:10000`, `https://account.blob.core.windows.net`.
    #[arg(long, value_name = "URL")]
    pub target: String,
    /// Where clients connect; port 0 takes a free one, which is printed.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// The trace to write.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// What the target is: blob, queue or table.
    #[arg(long, default_value = "blob", value_parser = corpus::service)]
    pub service: Service,
    /// What the trace says that it was recorded from.
    #[arg(long, default_value = "smalt", value_name = "NAME")]
    pub name: String,
    /// The seed of the client, for the trace.
    #[arg(long)]
    pub seed: Option<u64>,
}

/// Records until it is told to stop, then writes the trace.
///
/// # Errors
/// When the target or the address is of no use, or the file cannot be written.
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command talks to its caller"
)]
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let upstream = Upstream::at(&options.target)?;
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
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
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
    let log = proxy.log();
    let answered: Vec<String> = (1..=5)
        .map(|hundred| (hundred, log.answered(hundred)))
        .filter(|(_, count)| *count > 0)
        .map(|(hundred, count)| format!("{count} x {hundred}xx"))
        .collect();
    let (count, lost) = (log.len(), log.lost.clone());
    let trace = scrub::trace(&about, &log.ordered());
    corpus::write(&options.out, &trace.write()?)?;
    println!(
        "{count} exchanges ({}) in {}",
        answered.join(", "),
        options.out.display()
    );
    for one in &lost {
        eprintln!("not recorded: {one}");
    }
    Ok(if lost.is_empty() && count > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
