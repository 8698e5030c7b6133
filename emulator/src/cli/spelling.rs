//! Other spellings of a flag, each derived from its name: for `--blobPort` the environment variable
//! `SMALT_BLOB_PORT` and the flag `--blob-port`.

use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction, Command};

/// Flags that print something and exit: a variable for them would keep smalt from starting.
const WITHOUT_VARIABLE: [&str; 3] = ["help", "version", "completions"];

/// Gives each long flag its environment variable and its spelling in kebab-case.
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
    // Compose passes on a variable that nobody set as an empty one.
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

/// The environment variable of a long flag.
fn variable(long: &str) -> String {
    format!("SMALT_{}", separated(long, '_').to_uppercase())
}

/// The words of a name in camelCase, in small letters and separated.
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
    fn every_flag_has_its_variable_and_help_shows_it() {
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
    fn names_are_split_at_capitals() {
        for (long, expected) in [
            ("blobPort", "SMALT_BLOB_PORT"),
            ("oauth", "SMALT_OAUTH"),
            ("blobKeepAliveTimeout", "SMALT_BLOB_KEEP_ALIVE_TIMEOUT"),
        ] {
            assert_eq!(variable(long), expected);
        }
    }
}
