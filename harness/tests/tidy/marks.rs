//! Checks each file's opening comment, the reasons of its exceptions, and its words.

use crate::finding::Finding;
use crate::places::has_word;
use crate::tree::{Source, Tree};

/// Returns files that do not open with a module comment.
pub(crate) fn without_opening(sources: &[Source]) -> Vec<Finding> {
    let is_silent = |source: &&Source| {
        let first = source
            .lines
            .first()
            .and_then(|line| line.strip_prefix("//! "));
        first.is_none_or(|said| said.trim().is_empty())
    };
    let silent = sources.iter().filter(is_silent);
    silent
        .map(|source| Finding::new(&source.path, 1, "does not open with `//!`"))
        .collect()
}

/// Returns `ignore`, `allow` and `expect` without a reason.
pub(crate) fn without_reason(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        for (at, line) in source.code.iter().enumerate() {
            let text = line.trim_start();
            if !text.starts_with("#[") && !text.starts_with("#![") {
                continue;
            }
            if let Some(mark) = unreasoned(&attribute(&source.code[at..])) {
                let what = format!("`{mark}` has no reason");
                findings.push(Finding::new(&source.path, at + 1, what));
            }
        }
    }
    findings
}

/// Returns the whole attribute that starts in the first line.
fn attribute(code: &[String]) -> String {
    let mut text = String::new();
    for line in code {
        text.push_str(line.trim());
        if text.matches('[').count() <= text.matches(']').count() {
            break;
        }
    }
    text
}

fn unreasoned(attribute: &str) -> Option<&'static str> {
    let ignores = ["[ignore]", " ignore)", ",ignore)"];
    if ignores.iter().any(|mark| attribute.contains(mark)) {
        return Some("ignore");
    }
    let lints = ["allow", "expect"];
    let found = lints.into_iter().find(|lint| {
        let opens = [format!("[{lint}("), format!(" {lint}(")];
        opens.iter().any(|open| attribute.contains(open))
    });
    found.filter(|_| !has_word(attribute, "reason"))
}

/// Paths that exist only on one person's machine.
const PRIVATE_PATHS: &[&str] = &["/work/", "/home/", "/root/", "/Users/", r"C:\Users\"];

/// The reader's folder in an example of the documentation.
const PLACEHOLDER: &str = "/home/you/";

/// Notes of open work, which belong in an issue.
const NOTES: &[&str] = &["TODO", "FIXME", "XXX", "HACK"];

/// This file, which must name the words that it looks for.
const OWN: &str = "harness/tests/tidy/marks.rs";

/// Returns words that do not belong in the tree.
pub(crate) fn foreign_words(tree: &Tree) -> Vec<Finding> {
    let sources = tree.sources.iter();
    let sources = sources.flat_map(|s| numbered(&s.path, s.lines.iter().map(String::as_str)));
    let documents = tree.documents.iter();
    let documents = documents.flat_map(|d| numbered(&d.path, d.text.lines()));
    sources
        .chain(documents)
        .filter(|(path, _, _)| *path != OWN)
        .filter_map(|(path, line, text)| Some(Finding::new(path, line, foreign(text)?)))
        .collect()
}

fn numbered<'a>(
    path: &'a str,
    lines: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = (&'a str, usize, &'a str)> {
    (1..).zip(lines).map(move |(line, text)| (path, line, text))
}

fn foreign(line: &str) -> Option<String> {
    let line = line.replace(PLACEHOLDER, "");
    let private = PRIVATE_PATHS.iter().find(|path| starts_in(&line, path));
    if let Some(path) = private {
        return Some(format!("`{path}` is a path of somebody's machine"));
    }
    let note = NOTES.iter().find(|note| has_word(&line, note))?;
    let has_issue = line.contains("(#") || line.contains("https://");
    (!has_issue).then(|| format!("`{note}` names no issue"))
}

/// Returns whether a path starts here; in `/a/work/` the path `/work/` does not.
fn starts_in(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~}$*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Document;

    #[test]
    fn a_file_without_opening_is_found() {
        for text in ["", "use a;\n", "// A.\n", "//!\nuse a;\n", "/// A.\n"] {
            assert_eq!(
                without_opening(&[Source::new("a.rs", text)]).len(),
                1,
                "{text}"
            );
        }
        assert_eq!(without_opening(&[Source::new("a.rs", "//! A.\n")]), []);
    }

    #[test]
    fn an_exception_without_its_reason_is_found() {
        let found = |text| without_reason(&[Source::new("a.rs", text)]).len();
        for text in [
            "#[ignore]\nfn a() {}\n",
            "#[cfg_attr(windows, ignore)]\nfn a() {}\n",
            "    #[allow(dead_code)]\n",
            "#![expect(\n    clippy::a,\n    clippy::b\n)]\nlet reason = 1;\n",
            "#[cfg_attr(test, allow(dead_code))]\n",
        ] {
            assert_eq!(found(text), 1, "{text}");
        }
        for text in [
            "#[ignore = \"needs a disk of 1 TiB\"]\n",
            "#[allow(dead_code, reason = \"for tests\")]\n",
            "#![expect(\n    clippy::a,\n    reason = \"a table\"\n)]\n",
            "// #[ignore]\n",
            "a.expect(\"b\");\n",
        ] {
            assert_eq!(found(text), 0, "{text}");
        }
    }

    #[test]
    fn foreign_words_are_found_in_every_kind_of_file() {
        let tree = |text: &str| Tree {
            sources: vec![Source::new("a.rs", &format!("// {text}\n"))],
            documents: vec![Document {
                path: "a.md".to_owned(),
                text: format!("\n{text}\n"),
            }],
        };
        for text in [
            "at /home/me/x",
            "\"/work/x\"",
            "TODO: more",
            "(FIXME)",
            "see /root/.cargo",
        ] {
            let findings = foreign_words(&tree(text));
            let lines: Vec<_> = findings.iter().map(|f| f.line).collect();
            assert_eq!(lines, [1, 2], "{text}");
        }
        for text in [
            "GET /account/work/x",
            "TODO(#12): more",
            "a TODOS b",
            "$x/home/",
            "/home/you/x",
        ] {
            assert_eq!(foreign_words(&tree(text)), [], "{text}");
        }
    }
}
