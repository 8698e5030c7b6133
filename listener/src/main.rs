//! `smalt-listener`: works storage queues off with a command or an HTTP endpoint.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
