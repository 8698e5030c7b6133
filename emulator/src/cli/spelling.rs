//! Other spellings of a flag, derived from its name: `--blobPort` has the environment variable
//! `SMALT_BLOB_PORT` and the alias `--blob-port`.

use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction, Command};

/// Flags that print something and exit; as environment variables they would keep smalt from
/// starting.
const WITHOUT_VARIABLE: [&str; 3] = ["help", "version", "completions"];

/// Gives each long flag its environment variable and its kebab-case alias.
pub(super) fn complete(command: Command) -> Command {
    command
        .mut_args(complete_argument)
        .mut_subcommands(complete)
}

fn complete_argument(argument: Arg) -> Arg {
    let Some(long) = argument.get_long().map(str::to_owned) else {
        return argument;
    };
    let kebab = separated(&long, '-');
    let argument = match kebab == long {
        true => argument,
        false => argument.alias(kebab),
    };
    let variable = variable(&long);
    // Docker Compose passes an unset variable on as an empty one.
    let is_empty = std::env::var_os(&variable).is_some_and(|value| value.is_empty());
    if is_empty || WITHOUT_VARIABLE.contains(&long.as_str()) {
        return argument;
    }
    let argument = argument.env(variable).hide_env_values(true);
    match argument.get_action() {
        ArgAction::SetTrue => argument.value_parser(BoolishValueParser::new()),
        _ => argument,
    }
}

/// Returns the environment variable of a long flag.
fn variable(long: &str) -> String {
    format!("SMALT_{}", separated(long, '_').to_uppercase())
}

/// Splits a camelCase name into lowercase words joined by `separator`.
fn separated(name: &str, separator: char) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            words.push(separator);
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;

    #[test]
    fn every_flag_has_an_environment_variable_shown_in_help() {
        let mut command = Cli::complete_command();
        command.build();
        let help = command.render_long_help().to_string();
        let mut flags = 0;
        for argument in command.get_arguments() {
            let Some(long) = argument.get_long() else {
                continue;
            };
            if WITHOUT_VARIABLE.contains(&long) {
                continue;
            }
            let expected = variable(long);
            let found = argument.get_env().and_then(|name| name.to_str());
            assert_eq!(found, Some(expected.as_str()), "--{long}");
            let shown = help.contains(&format!("[env: {expected}]"));
            assert!(shown || argument.is_hide_set(), "--{long}: {expected}");
            flags += 1;
        }
        assert!(flags > 30, "{flags}");
    }

    #[test]
    fn camel_case_names_are_split_at_capitals() {
        for (long, expected) in [
            ("blobPort", "SMALT_BLOB_PORT"),
            ("oauth", "SMALT_OAUTH"),
            ("blobKeepAliveTimeout", "SMALT_BLOB_KEEP_ALIVE_TIMEOUT"),
        ] {
            assert_eq!(variable(long), expected);
        }
    }
}
