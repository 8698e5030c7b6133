//! The binary `smalt-sweeper`: command line, logging, signals, exit codes. All else is the
//! library's.

mod cli;
mod connect;
mod show;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use indicatif::{ProgressBar, ProgressStyle};
use smalt_sweeper::error::exit;
use smalt_sweeper::{Finished, SweepError};

use cli::{Cli, Command, Common, LogFormat, PlanArgs, StateCommand};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(command(cli.command)),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(explain(&error)),
    }
}

/// Says what went wrong, and gives the exit code for it.
fn explain(error: &anyhow::Error) -> u8 {
    let text = smalt_sweeper::uri::redact(&format!("{error:#}"));
    if std::io::stderr().is_terminal() {
        eprintln!("\x1b[1;31merror:\x1b[0m {text}");
    } else {
        eprintln!("error: {text}");
    }
    match error.downcast_ref::<SweepError>() {
        Some(error) => error.exit_code(),
        None => exit::USAGE,
    }
}

async fn command(command: Command) -> Result<u8> {
    match command {
        Command::Run(common) => run(&common).await,
        Command::Once(common) => once(&common).await,
        Command::Plan(args) => plan(&args).await,
        Command::State { command } => state(command).await,
        Command::Completions { shell } => {
            let mut command = Cli::command();
            clap_complete::generate(shell, &mut command, "smalt-sweeper", &mut std::io::stdout());
            Ok(exit::OK)
        }
    }
}

fn sweeper(common: &Common) -> Result<(smalt_sweeper::Sweeper, smalt_sweeper::settings::Settings)> {
    log(common)?;
    let settings = connect::settings(common.config.as_deref(), common.flags())?;
    Ok((connect::sweeper(&settings)?, settings))
}

fn log(common: &Common) -> Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_new(&common.log_level)?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match common.log {
        LogFormat::Json => subscriber.json().flatten_event(true).init(),
        LogFormat::Text => subscriber.with_ansi(std::io::stderr().is_terminal()).init(),
    }
    Ok(())
}

async fn run(common: &Common) -> Result<u8> {
    let (sweeper, _) = sweeper(common)?;
    ended(aborting(sweeper.run_until(asked_to_stop())).await, false)
}

async fn once(common: &Common) -> Result<u8> {
    let (sweeper, settings) = sweeper(common)?;
    if settings.sweeper.containers.is_empty() && settings.sweeper.create_state {
        tracing::warn!("no --container given; sweeping what the state document says");
    }
    let bar = spinner("sweeping");
    let finished = aborting(sweeper.once_until(asked_to_stop())).await;
    bar.finish_and_clear();
    ended(finished, true)
}

/// Prints how it ended. A run that was stopped by a signal ends well.
fn ended(finished: Option<Finished>, report: bool) -> Result<u8> {
    let Some(finished) = finished else {
        return Ok(exit::INTERRUPTED);
    };
    if report {
        println!("{}", serde_json::to_string_pretty(&finished.report)?);
    }
    let code = finished.exit_code();
    match finished.error {
        Some(error) => Err(error.into()),
        None if report => Ok(code),
        None => Ok(exit::OK),
    }
}

/// The first SIGTERM or Ctrl-C.
async fn asked_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Lets work go on until a second signal; `None` then. What is dropped is safe: the ledger has it.
async fn aborting(work: impl Future<Output = Finished>) -> Option<Finished> {
    let twice = async {
        asked_to_stop().await;
        asked_to_stop().await;
    };
    tokio::select! {
        biased;
        finished = work => Some(finished),
        () = twice => None,
    }
}

async fn plan(args: &PlanArgs) -> Result<u8> {
    let (sweeper, settings) = sweeper(&args.common)?;
    let bar = spinner("planning");
    let told = bar.clone();
    let progress = move |plan: &smalt_sweeper::Plan| {
        let seen: u64 = plan.containers.values().map(|c| c.totals.seen).sum();
        told.set_message(format!("{seen} blobs seen"));
        told.tick();
    };
    let planned = sweeper.plan(settings.prices, args.rows, progress).await;
    bar.finish_and_clear();
    let plan = planned?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&plan)?);
    } else if args.csv {
        print!("{}", plan.csv());
    } else {
        print!("{}", show::plan(&plan));
    }
    let failed = plan.containers.values().any(|c| c.error.is_some());
    Ok(if failed { exit::FAILED_ITEMS } else { exit::OK })
}

async fn state(command: StateCommand) -> Result<u8> {
    match command {
        StateCommand::Init { replace, common } => {
            let (sweeper, settings) = sweeper(&common)?;
            let place = &settings.sweeper.state_blob;
            let place = format!("{}/{}", place.container, place.name);
            if sweeper.init_state(replace).await? {
                println!(
                    "created {place} with {} containers",
                    settings.sweeper.containers.len()
                );
            } else {
                println!("{place} is there already; --replace writes it anew");
            }
        }
        StateCommand::Show { xml, common } => {
            let (sweeper, _) = sweeper(&common)?;
            let document = sweeper.state().await?;
            if xml {
                let text = smalt_sweeper::state::write(&document).map_err(SweepError::from)?;
                println!("{}", smalt_sweeper::uri::redact(&text));
            } else {
                print!("{}", show::state(&document));
            }
        }
    }
    Ok(exit::OK)
}

/// A line that lives, on terminals only.
fn spinner(what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(120));
    bar
}
