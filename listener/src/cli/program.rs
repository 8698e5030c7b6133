//! Makes the handler of a queue or an event, and checks whether a command's program exists, before
//! any message is received.
//!
//! In a shell command line, only a first word that is plainly a name or a path is checked, unless
//! it is a word of the shell itself. Only the shell can expand quotes, variables and assignments.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use smalt_listener::config::file::HandlerLayer;
use smalt_listener::handler::Handler;
use smalt_listener::handler::exec::{CommandLine, ExecHandler};
use smalt_listener::handler::http::HttpHandler;
use smalt_worker::process::{Process, Sources as _};

use super::ambient::is_program;

/// POSIX's reserved words and built-in utilities, and those of the shells that serve as `sh`.
const OF_THE_SHELL: &str = "\
    . : [ [[ ! { } alias bg bind break builtin caller case cd command compgen \
    complete compopt continue coproc declare dirs disown do done echo elif else \
    enable esac eval exec exit export false fc fg fi for function getopts hash help \
    history if in jobs kill let local logout mapfile popd print printf pushd pwd \
    read readarray readonly return select set setopt shift shopt source suspend test \
    then time times trap true type typeset ulimit umask unalias unset until wait \
    whence while";

pub(super) fn handler(layer: &HandlerLayer) -> anyhow::Result<Arc<dyn Handler>> {
    match (&layer.exec, &layer.http) {
        (Some(line), None) => {
            if let Some(problem) = problem(line, Process.variable("PATH").as_deref()) {
                anyhow::bail!("handler.exec: {problem}");
            }
            let passed = layer.env.iter().flatten().cloned();
            Ok(Arc::new(ExecHandler::new(line.clone()).passing(passed)))
        }
        (None, Some(url)) => {
            let mut handler = HttpHandler::new(url, layer.on_4xx.unwrap_or_default())?;
            if let Some(content_type) = &layer.content_type {
                handler = handler.with_content_type(content_type);
            }
            Ok(Arc::new(handler))
        }
        (None, None) => anyhow::bail!("no handler is named: give --exec COMMAND or --http URL"),
        (Some(_), Some(_)) => anyhow::bail!("two handlers are named: give exec or http, not both"),
    }
}

/// Returns why a command cannot run, as far as that is visible before running it.
pub(crate) fn problem(line: &CommandLine, path: Option<&str>) -> Option<String> {
    let word = match line {
        CommandLine::Shell(line) if line.trim().is_empty() => return Some("is empty".to_owned()),
        CommandLine::Shell(line) => plain_word(line)?,
        CommandLine::Argv(argv) => match argv.first().map(String::as_str) {
            None | Some("") => return Some("is empty; give a program".to_owned()),
            Some(program) => program,
        },
    };
    if cfg!(not(unix)) {
        // Other systems find extensions and built-in commands by their own rules.
        return None;
    }
    if word.contains('/') {
        return match is_program(Path::new(word)) {
            true => None,
            false if Path::new(word).exists() => Some(format!("`{word}` cannot be executed")),
            false => Some(format!("`{word}` does not exist")),
        };
    }
    // Without `PATH` the system uses a default of its own.
    let mut folders = path?.split(':').map(PathBuf::from);
    let found = folders.any(|folder| is_program(&folder.join(word)));
    (!found).then(|| format!("no program `{word}` is found in PATH"))
}

/// Returns the first word of a shell command line if it is a name or path and not a word of the
/// shell.
fn plain_word(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    let own = OF_THE_SHELL.split_whitespace().any(|own| own == word);
    (word.chars().all(plain) && !own).then_some(word)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Option<String> {
        problem(&CommandLine::Shell(line.to_owned()), Some("/usr/bin:/bin"))
    }

    #[test]
    fn a_missing_program_is_reported() {
        for (line, says) in [
            ("", "is empty"),
            (" \t", "is empty"),
            ("/no/such/binary --fast", "`/no/such/binary` does not exist"),
            ("./no-such-script", "`./no-such-script` does not exist"),
            ("/etc", "`/etc` cannot be executed"),
            ("/etc/passwd", "`/etc/passwd` cannot be executed"),
            (
                "no-such-program -x",
                "no program `no-such-program` is found in PATH",
            ),
        ] {
            assert_eq!(shell(line).as_deref(), Some(says), "{line}");
        }
        let argv =
            |words: &[&str]| CommandLine::Argv(words.iter().map(|w| (*w).to_owned()).collect());
        for words in [
            &[] as &[&str],
            &[""],
            &["/no/such"],
            &["no-such-program", "cat"],
        ] {
            assert!(problem(&argv(words), Some("/bin")).is_some(), "{words:?}");
        }
        assert_eq!(problem(&argv(&["cat", "-"]), Some("/usr/bin:/bin")), None);
    }

    #[test]
    fn shell_syntax_is_not_checked() {
        for line in [
            "cat",
            "  cat > /dev/null",
            "/bin/sh -c 'exit 3'",
            "exit 65",
            ": nothing",
            "if true; then false; fi",
            "FOO=bar no-such-program",
            "$HANDLER",
            "\"no such\"",
            "no-such-program;cat",
            "(no-such-program)",
            "~/handle",
            "[ -n x ]",
        ] {
            assert_eq!(shell(line), None, "{line}");
        }
        let unknown = CommandLine::Shell("no-such-program".to_owned());
        assert_eq!(problem(&unknown, None), None);
    }
}
