//! For tests: the options of a command as somebody types them.

#[derive(Debug, clap::Parser)]
struct Command<T: clap::Args> {
    #[command(flatten)]
    options: T,
}

/// Parses what stands behind the command's name.
///
/// # Errors
/// As the command line says it.
pub(crate) fn parsed<T: clap::Args>(arguments: &str) -> Result<T, clap::Error> {
    let arguments = arguments.split_ascii_whitespace();
    let line = std::iter::once("harness").chain(arguments);
    <Command<T> as clap::Parser>::try_parse_from(line).map(|command| command.options)
}
