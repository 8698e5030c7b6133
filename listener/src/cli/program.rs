//! Whether the program of a command can be found: said before a message is taken for nothing.
//!
//! Of a line for the shell only a first word that is plainly a name or a path is judged, and no
//! word of the shell's own: what quotes, variables or assignments come to, the shell knows alone.

use std::path::{Path, PathBuf};

use smalt_listener::handler::exec::CommandLine;

use super::ambient::is_program;

/// Words that shells understand themselves: POSIX's reserved words and built-in utilities, and
/// those of the shells that serve as `sh`.
const OF_THE_SHELL: &str = "\
    . : [ [[ ! { } alias bg bind break builtin caller case cd command compgen \
    complete compopt continue coproc declare dirs disown do done echo elif else \
    enable esac eval exec exit export false fc fg fi for function getopts hash help \
    history if in jobs kill let local logout mapfile popd print printf pushd pwd \
    read readarray readonly return select set setopt shift shopt source suspend test \
    then time times trap true type typeset ulimit umask unalias unset until wait \
    whence while";

/// What is wrong with a command, as far as that shows before it is run.
pub(crate) fn problem(line: &CommandLine, path: Option<&str>) -> Option<String> {
    let word = match line {
        CommandLine::Shell(line) if line.trim().is_empty() => return Some("is empty".to_owned()),
        CommandLine::Shell(line) => plain_word(line)?,
        CommandLine::Argv(argv) => match argv.first().map(String::as_str) {
            None | Some("") => return Some("names no program".to_owned()),
            Some(program) => program,
        },
    };
    if cfg!(not(unix)) {
        // Extensions and built-in commands are found by rules of their own.
        return None;
    }
    if word.contains('/') {
        return match is_program(Path::new(word)) {
            true => None,
            false if Path::new(word).exists() => Some(format!("`{word}` cannot be executed")),
            false => Some(format!("`{word}` is not there")),
        };
    }
    // Without a PATH there is the system's own.
    let mut folders = path?.split(':').map(PathBuf::from);
    let found = folders.any(|folder| is_program(&folder.join(word)));
    (!found).then(|| format!("no program `{word}` is found in PATH"))
}

/// The first word of a line for the shell, where it is a name or a path and no word of the shell's.
fn plain_word(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    let own = OF_THE_SHELL.split_whitespace().any(|own| own == word);
    (word.chars().all(plain) && !own).then_some(word)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(line: &str) -> Option<String> {
        problem(&CommandLine::Shell(line.to_owned()), Some("/usr/bin:/bin"))
    }

    #[test]
    fn what_is_plainly_missing_is_said() {
        for (line, says) in [
            ("", "is empty"),
            (" \t", "is empty"),
            ("/no/such/binary --fast", "`/no/such/binary` is not there"),
            ("./no-such-script", "`./no-such-script` is not there"),
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
    fn what_only_the_shell_knows_is_left_to_it() {
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
