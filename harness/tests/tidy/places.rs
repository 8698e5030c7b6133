//! Names that each crate may use only in certain files.
//!
//! Clippy's disallowed methods restrict the calls. These rules restrict the names, so that even
//! imports stay in their place, and check that each exception is still needed.

use crate::finding::Finding;
use crate::tree::Source;

/// A folder, names or paths that are restricted in it, as code writes them, and the files, or
/// folders with a trailing `/`, in which they are allowed.
pub(crate) type Place = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const HYPER: &[&str] = &["hyper", "hyper_util"];
const FILES: &[&str] = &[
    "std::fs",
    "tokio::fs",
    "OpenOptions",
    "File::open",
    "File::create",
    "pem_file_iter",
    "from_pem_file",
];
const TIME: &[&str] = &["SystemTime", "std::time::Instant", "std::time::UNIX_EPOCH"];
/// Sources of randomness. Generators that take a seed are not restricted.
const RANDOMNESS: &[&str] = &[
    "getrandom",
    "RandomState",
    "OsRng",
    "thread_rng",
    "from_os_rng",
    "from_entropy",
    "new_v4",
];

/// What a library of the protocol has no use for.
const SYSTEM: &[&str] = &[
    "std::fs",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "std::env",
    "std::thread",
    "tokio",
    "hyper",
];

const CLOCK: &[&str] = &["emulator/src/clock.rs"];
const IDS: &[&str] = &["emulator/src/ids.rs"];
const STORE: &[&str] = &["emulator/src/store/"];
const HTTP: &[&str] = &["emulator/src/http.rs", "emulator/src/http/"];
/// One exception: rustls reads certificate and key, which do not belong to the store.
const DISK: &[&str] = &[
    "emulator/src/disk.rs",
    "emulator/src/disk/",
    "emulator/src/http/tls.rs",
];
/// The shim replaces the C library's functions (docs/adr/0014), and the fuzzers define the callback
/// that counts the cost of an input.
const UNSAFE: &[&str] = &["harness/shim/src/", "harness/fuzz/src/"];
const OF_SLEEVE: &[&str] = &["sleeve/src/ambient.rs"];
const OF_WORKER: &[&str] = &["worker/src/process.rs"];
/// The bodies that the command sends, and the check that a handler's program exists.
const OF_LISTENER: &[&str] = &["listener/src/cli/ambient.rs"];

pub(crate) const PLACES: &[Place] = &[
    ("", &["unsafe", "libc"], UNSAFE),
    ("emulator/", HYPER, HTTP),
    ("emulator/", &["sled"], STORE),
    ("emulator/src/", FILES, DISK),
    ("emulator/", TIME, CLOCK),
    ("emulator/", RANDOMNESS, IDS),
    ("sleeve/", TIME, OF_SLEEVE),
    ("sleeve/", RANDOMNESS, OF_SLEEVE),
    ("sleeve/", FILES, &[]),
    ("worker/src/", TIME, OF_WORKER),
    ("worker/src/", RANDOMNESS, OF_WORKER),
    ("worker/src/", FILES, OF_WORKER),
    ("sweeper/src/", TIME, &[]),
    ("sweeper/src/", RANDOMNESS, &[]),
    ("sweeper/src/", FILES, &[]),
    ("listener/src/", TIME, &[]),
    ("listener/src/", RANDOMNESS, &[]),
    ("listener/src/", FILES, OF_LISTENER),
    ("protocol/", TIME, &[]),
    ("protocol/", RANDOMNESS, &[]),
    ("protocol/", SYSTEM, &[]),
];

/// Returns names outside of their places, and places that no longer use them.
pub(crate) fn judge(sources: &[Source], places: &[Place]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (within, names, only) in places {
        let mut used = vec![false; only.len()];
        for source in sources.iter().filter(|s| s.path.starts_with(within)) {
            for (line, name) in named(source, names) {
                match only.iter().position(|only| covers(only, &source.path)) {
                    Some(at) => used[at] = true,
                    None => {
                        let what = format!("`{name}` is allowed only in {only:?}");
                        findings.push(Finding::new(&source.path, line, what));
                    }
                }
            }
        }
        let unused = only.iter().zip(used).filter(|(_, used)| !used);
        findings.extend(
            unused.map(|(only, _)| {
                Finding::new(only, 0, format!("no longer names any of {names:?}"))
            }),
        );
    }
    findings
}

fn covers(only: &str, path: &str) -> bool {
    path == only || (only.ends_with('/') && path.starts_with(only))
}

fn named<'a>(source: &Source, names: &[&'a str]) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    for (line, statement) in statements(&source.code) {
        let named = names.iter().filter(|name| mentions(&statement, name));
        found.extend(named.map(|name| (line, *name)));
    }
    found
}

/// Returns lines with their numbers; a multi-line import is one line.
fn statements(code: &[String]) -> Vec<(usize, String)> {
    let mut statements: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(code) {
        match statements.last_mut() {
            Some((_, import)) if is_open => import.push_str(line.trim()),
            _ => statements.push((number, line.trim().to_owned())),
        }
        let last = statements.last().map_or("", |(_, text)| text);
        let import = last.strip_prefix("pub ").unwrap_or(last);
        is_open = import.starts_with("use ") && !import.contains(';');
    }
    statements
}

/// Returns whether this line uses the name: as a whole word, or in a group of imports.
fn mentions(line: &str, name: &str) -> bool {
    if has_word(line, name) {
        return true;
    }
    let Some((path, last)) = name.rsplit_once("::") else {
        return false;
    };
    let group = line.split_once(&format!("{path}::{{"));
    group.is_some_and(|(_, group)| has_word(group, last))
}

/// Returns whether `word` occurs in `text` without an adjacent letter, digit or `_`.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &[Place] = &[("a/", &["sled", "std::fs"], &["a/disk.rs", "a/store/"])];

    fn found(path: &str, text: &str) -> Vec<usize> {
        let sources = [
            Source::new(path, text),
            Source::new("a/disk.rs", "use std::fs;\n"),
            Source::new("a/store/b.rs", "use sled::Db;\n"),
        ];
        let findings = judge(&sources, RULE);
        findings.iter().map(|f| f.line).collect()
    }

    #[test]
    fn a_name_out_of_its_place_is_found() {
        for text in [
            "\nlet a = std::fs::read(b);\n",
            "\nuse std::{fs, io};\n",
            "\nuse std::{\n    io,\n    fs,\n};\n",
            "\npub use sled;\n",
            "\n#[cfg(test)]\nmod tests { use std::fs; }\n",
        ] {
            assert_eq!(found("a/b.rs", text).len(), 1, "{text}");
        }
        assert_eq!(found("a/b.rs", "\nuse std::{fs, io};\n"), [2]);
        assert_eq!(found("a/store.rs", "use sled::Db;\n"), [1]);
    }

    #[test]
    fn similar_words_are_not_found() {
        for text in [
            "sled_engine();",
            "// sled",
            "a(\"std::fs\");",
            "use std::fsx;",
            "my_sled()",
        ] {
            assert_eq!(found("a/b.rs", text), [0_usize; 0], "{text}");
        }
        assert_eq!(found("b/b.rs", "use sled::Db;"), [0_usize; 0]);
    }

    #[test]
    fn a_place_that_is_no_longer_needed_is_found() {
        let sources = [Source::new("a/disk.rs", "use std::fs;\n")];
        let expected = "a/store/:0: no longer names any of [\"sled\", \"std::fs\"]";
        let findings = judge(&sources, RULE);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].to_string(), expected);
    }
}
