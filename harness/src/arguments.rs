//! Test support: parses command-line options.

#[derive(Debug, clap::Parser)]
struct Command<T: clap::Args> {
    #[command(flatten)]
    options: T,
}

/// Parses the arguments that follow the command's name.
pub(crate) fn parsed<T: clap::Args>(arguments: &str) -> Result<T, clap::Error> {
    let arguments = arguments.split_ascii_whitespace();
    let line = std::iter::once("harness").chain(arguments);
    <Command<T> as clap::Parser>::try_parse_from(line).map(|command| command.options)
}
