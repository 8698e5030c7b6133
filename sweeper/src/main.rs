//! The `smalt-sweeper` binary: command line, logging, signals and exit codes. The library does the
//! rest.

mod cli;
mod connect;
mod show;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    smalt_sleeve::stdout::end_when_nobody_reads();
    let cli = cli::Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(cli::command(cli.command)),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(wrong(&error)),
    }
}

fn wrong(error: &anyhow::Error) -> u8 {
    let text = smalt_sleeve::redact(&format!("{error:#}"));
    smalt_worker::exit::show(&text, cli::hint(error));
    cli::exit_code(error)
}
