//! The command `harness bench`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::lines::{IN_PROCESS, Rate, Scale};
use super::report::{self, Row};
use super::servers::{PeerOptions, Start, start_bare};
use super::{inproc, page, queue, rates, rename, scale, table};
use crate::check::exit_code;
use crate::servers::smalt::binary;
use crate::servers::{Running, ServerError};

/// Options of `harness bench`.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    /// Measure one part only, instead of the table.
    #[command(subcommand)]
    pub part: Option<Part>,
    /// Time to measure each line, in seconds.
    #[arg(long, default_value_t = 3.0)]
    pub seconds: f64,
    /// Measure only lines whose name contains this: `put`, `entity`, `page`, `start`, `memory`, `in
    /// process`.
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,
    /// Number of blobs, and of messages, for the lines about scale.
    #[arg(long, default_value_t = 100_000)]
    pub blobs: u64,
    /// Server to measure beside smalt.
    #[command(flatten)]
    pub peer: PeerOptions,
    /// The `smalt` binary to measure; by default the one next to this executable.
    #[arg(long, value_name = "FILE")]
    pub smalt: Option<PathBuf>,
    /// Exit with code 1 if a target is missed; otherwise the table only shows it.
    #[arg(long)]
    pub require: bool,
}

/// A measurement that runs by itself.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Part {
    /// Compare the cost of a message in a long queue with that in a short one.
    Queue(queue::Options),
    /// Compare the cost of an entity in a long table with that in a short one.
    Table(table::Options),
    /// Compare the sweeper's cost of a page of 5,000 blobs with that of a bare client.
    Page(page::Options),
    /// Rename a directory of a million files, and list and delete it.
    Rename(rename::Options),
}

/// Maximum number of blobs on the peer: more take minutes, and its page and start times grow with
/// them.
const PEER_BLOBS_MAX: u64 = 20_000;

struct Bench<'a> {
    options: &'a Options,
    smalt: Start,
    peer: Option<Start>,
    bar: ProgressBar,
    rows: Vec<Row>,
}

impl Bench<'_> {
    fn wants(&self, line: &str) -> bool {
        let only = self.options.only.as_deref();
        only.is_none_or(|only| line.contains(only))
    }

    fn push(&mut self, row: Row) {
        self.bar.suspend(|| print!("{}", report::line(&row)));
        self.bar.inc(1);
        self.rows.push(row);
    }

    async fn rates(&mut self, dir: &Path) -> Result<(), ServerError> {
        let lines: Vec<Rate> = Rate::ALL
            .into_iter()
            .filter(|rate| self.wants(rate.name()))
            .collect();
        if lines.is_empty() {
            return Ok(());
        }
        let (smalt, _) = self.smalt.start(&dir.join("smalt")).await?;
        rates::prepare(&smalt).await?;
        let bare = start_bare().await?;
        let azurite = match &self.peer {
            None => None,
            Some(peer) => {
                let (azurite, _) = peer.start(&dir.join("azurite")).await?;
                rates::prepare(&azurite).await?;
                Some(azurite)
            }
        };
        for rate in lines {
            self.bar.set_message(rate.name());
            let row = self.rate(rate, &smalt, &bare, azurite.as_ref()).await;
            let failed =
                |error: ServerError| Row::failed(rate.name().to_owned(), error.to_string());
            self.push(row.unwrap_or_else(failed));
        }
        smalt.process.kill().await?;
        bare.process.kill().await
    }

    async fn rate(
        &self,
        rate: Rate,
        smalt: &Running,
        bare: &Running,
        azurite: Option<&Running>,
    ) -> Result<Row, ServerError> {
        let seconds = self.options.seconds;
        let length = rates::answer_length(smalt, rate).await?;
        let of_bare = rates::measure(bare, rate, length, seconds).await?;
        let of_smalt = rates::measure(smalt, rate, length, seconds).await?;
        let of_azurite = match azurite {
            Some(azurite) => Some(rates::measure(azurite, rate, length, seconds).await?),
            None => None,
        };
        Ok(Row::of_rate(rate, of_smalt, of_bare, of_azurite))
    }

    async fn scale(&mut self, dir: &Path) -> Result<(), ServerError> {
        let blobs = self.options.blobs;
        let lines: Vec<Scale> = Scale::ALL
            .into_iter()
            .filter(|scale| self.wants(&scale.name(blobs)))
            .collect();
        if lines.is_empty() {
            return Ok(());
        }
        self.bar.set_message("many blobs");
        let seconds = self.options.seconds;
        let smalt = scale::measure(&self.smalt, &dir.join("smalt-many"), blobs, seconds).await?;
        let azurite = match &self.peer {
            Some(peer) if blobs <= PEER_BLOBS_MAX => {
                self.bar.set_message("many blobs, Azurite");
                let dir = dir.join("azurite-many");
                Some(scale::measure(peer, &dir, blobs, seconds).await?)
            }
            _ => None,
        };
        for line in lines {
            self.push(Row::of_scale(line, blobs, &smalt, azurite.as_ref()));
        }
        Ok(())
    }

    async fn in_process(&mut self) -> Result<(), ServerError> {
        if self.wants(IN_PROCESS) {
            self.bar.set_message(IN_PROCESS);
            let measured = inproc::measure(self.options.seconds).await?;
            self.push(Row::of_in_process(measured));
        }
        Ok(())
    }
}

fn progress(options: &Options) -> ProgressBar {
    let lines = Rate::ALL.len() + Scale::ALL.len() + 1;
    let bar = ProgressBar::new(lines as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    if options.only.is_some() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}

/// Runs the command; prints each line as soon as it is measured.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    match &options.part {
        Some(Part::Queue(options)) => return queue::run_command(options).await,
        Some(Part::Table(options)) => return table::run_command(options).await,
        Some(Part::Page(options)) => return page::run_command(options).await,
        Some(Part::Rename(options)) => return rename::run_command(options).await,
        None => {}
    }
    let temporary = tempfile::tempdir()?;
    let mut bench = Bench {
        options,
        smalt: Start::Smalt(binary(options.smalt.as_deref())?),
        peer: options.peer.start()?,
        bar: progress(options),
        rows: Vec::new(),
    };
    print!("{}", report::heading());
    bench.rates(temporary.path()).await?;
    bench.scale(temporary.path()).await?;
    bench.in_process().await?;
    bench.bar.finish_and_clear();
    if bench.rows.is_empty() {
        let only = options.only.as_deref().unwrap_or_default();
        anyhow::bail!("no line has a name that contains {only:?}; see `harness bench --help`");
    }
    println!(
        "* bare hyper with smalt's settings, answering as many bytes; for a page, one of 10,000 \
         blobs"
    );
    println!("{}", report::summary(&bench.rows));
    Ok(exit_code(is_enough(options, &bench.rows)))
}

/// Whether the run succeeds under the options.
fn is_enough(options: &Options, rows: &[Row]) -> bool {
    !options.require || rows.iter().all(|row| row.reached != Some(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parsed;

    /// A missed target fails the run only with `--require`.
    #[test]
    fn missed_target_fails_with_require() {
        let row = |reached| Row {
            reached,
            ..Row::default()
        };
        let reached = [row(Some(true)), row(None)];
        let missed = [row(Some(true)), row(Some(false))];
        let required = parsed("--require").unwrap();
        assert!(is_enough(&required, &reached) && !is_enough(&required, &missed));
        assert!(is_enough(&parsed("").unwrap(), &missed));
    }
}
