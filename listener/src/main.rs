//! `smalt-listener`: processes storage queues with a command or an HTTP endpoint.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    smalt_sleeve::stdout::end_when_nobody_reads();
    cli::main()
}
