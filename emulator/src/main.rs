//! The `smalt` binary: reads the command line, opens the store, and serves until it is stopped.

use std::process::ExitCode;

use anyhow::Context as _;
use smalt::cli::{Cli, Durability, Flags};
use smalt::log;
use smalt::server::{self, Server};

/// docs/adr/0016-mimalloc.md says why it replaces the C library's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Cli { command, flags, .. } = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    if let Some(shell) = flags.completions {
        let mut command = Cli::complete_command();
        clap_complete::generate(shell, &mut command, "smalt", &mut std::io::stdout());
        return ExitCode::SUCCESS;
    }
    let result = log::start(&flags).and_then(|()| match command {
        Some(command) => command.run(),
        None => serve(&flags),
    });
    result.unwrap_or_else(|error| {
        log::print_error(&error);
        ExitCode::FAILURE
    })
}

fn serve(flags: &Flags) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let served = runtime.block_on(run(flags));
    // The store is closed, so results of threads that still compute are not needed.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

async fn run(flags: &Flags) -> anyhow::Result<()> {
    let stop = server::stop_signal().context("cannot listen for signals")?;
    let builder = server::builder(flags)?;
    let emulator = match (flags.in_memory_persistence, flags.mode) {
        (true, _) => builder,
        (false, Durability::Durable) => builder.durable(&flags.location),
        (false, Durability::Fast) => builder.fast(&flags.location),
    }
    .open()?;
    let started = server::start(flags, &emulator).await?;
    let mut server = Server::bind(flags, emulator).await?;
    server.announce(flags)?;
    server::announce_start(flags, &started);
    let stop = async {
        tokio::select! {
            () = stop => {}
            () = server::stdin_end(), if flags.stop_with_stdin => {}
        }
    };
    server.run(stop).await
}
