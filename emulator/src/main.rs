//! The binary `smalt`: reads the command line, opens the store, serves until it is told to stop.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser as _};
use smalt::cli::{Cli, Durability};
use smalt::log;
use smalt::server::{self, Server};

/// Why not the C library's: docs/adr/0016-mimalloc.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(shell) = cli.completions {
        clap_complete::generate(shell, &mut Cli::command(), "smalt", &mut std::io::stdout());
        return ExitCode::SUCCESS;
    }
    log::start(&cli);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let result = runtime
        .context("the runtime cannot start")
        .and_then(|rt| rt.block_on(run(&cli)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::print_error(&error);
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: &Cli) -> anyhow::Result<()> {
    let builder = server::builder(cli)?;
    let emulator = match (cli.in_memory_persistence, cli.mode) {
        (true, _) => builder,
        (false, Durability::Durable) => builder.durable(&cli.location),
        (false, Durability::Fast) => builder.fast(&cli.location),
    }
    .open()?;
    let started = server::start(cli, &emulator).await?;
    let server = Server::bind(cli, emulator).await?;
    server.announce(cli);
    server::announce_start(cli, &started);
    server.run().await
}
