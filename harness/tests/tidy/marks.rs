//! Checks each file's opening comment and its words.

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
