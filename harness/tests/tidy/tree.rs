//! Reads the tree as text: every source, document and manifest of the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::code;
use crate::manifests::Manifest;

/// A file other than a Rust source.
pub(crate) struct Document {
    /// The path from the root of the tree, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A Rust source file.
pub(crate) struct Source {
    /// The path from the root of the tree, with `/`.
    pub(crate) path: String,
    /// The lines as written.
    pub(crate) lines: Vec<String>,
    /// The lines without comments and the contents of quotes.
    pub(crate) code: Vec<String>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Source {
            path: path.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
            code: code::code(text).lines().map(str::to_owned).collect(),
        }
    }

    /// Returns the first line, from 1, of the tests at the end of the file; past the end if there
    /// are none. A file of tests returns 1.
    pub(crate) fn tests_from(&self) -> usize {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let is_tests = self.path.contains("/tests/")
            || name == "tests.rs"
            || name.ends_with("_tests.rs")
            || self.path.starts_with("tests/");
        if is_tests {
            return 1;
        }
        let opens = |pair: &[String]| {
            let module = pair[1].trim_start().trim_start_matches("pub(crate) ");
            pair[0].trim() == "#[cfg(test)]" && module.starts_with("mod ")
        };
        let at = self
            .code
            .windows(2)
            .position(|pair| opens(pair) && pair[1].ends_with('{'));
        at.map_or(self.lines.len() + 1, |at| at + 1)
    }
}

/// All files that the rules look at.
pub(crate) struct Tree {
    /// Rust sources of all crates.
    pub(crate) sources: Vec<Source>,
    /// Manifests, scripts, pages.
    pub(crate) documents: Vec<Document>,
}

/// Endings of the documents that the rules look at. Data (recordings, stores) is excluded.
const DOCUMENT_ENDINGS: &[&str] = &["toml", "md", "sh", "yml", "yaml", "py", "js", "mjs", "html"];

/// Folders without files of the project, unless they are modules: build output, downloads, git's
/// data.
const NOT_OURS: &[&str] = &["target", "build", "node_modules", ".git"];

static TREE: LazyLock<Tree> = LazyLock::new(Tree::read);

impl Tree {
    /// Returns the tree that contains this package.
    pub(crate) fn get() -> &'static Self {
        &TREE
    }

    fn read() -> Self {
        let mut tree = Tree {
            sources: Vec::new(),
            documents: Vec::new(),
        };
        tree.walk(&Tree::root(), "");
        tree
    }

    /// Returns the directory of the workspace.
    pub(crate) fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    /// Returns the text of a document; an empty one if it does not exist.
    pub(crate) fn document(&self, path: &str) -> &str {
        let document = self.documents.iter().find(|document| document.path == path);
        document.map_or("", |document| &document.text)
    }

    /// Returns the manifests of the workspace and its packages.
    pub(crate) fn manifests(&self) -> Vec<Manifest> {
        let manifests = self.documents.iter();
        manifests
            .filter(|d| d.path.split('/').next_back() == Some("Cargo.toml"))
            .map(|d| Manifest::parse(&d.path, &d.text))
            .collect()
    }

    fn walk(&mut self, dir: &Path, below: &str) {
        for (name, path) in entries(dir) {
            let within = format!("{below}{name}");
            if path.is_dir() {
                if !NOT_OURS.contains(&name.as_str()) || below.contains("src/") {
                    self.walk(&path, &format!("{within}/"));
                }
            } else if name.ends_with(".rs") {
                self.sources.push(Source::new(&within, &text(&path)));
            } else if is_document(&path) {
                let text = text(&path);
                self.documents.push(Document { path: within, text });
            }
        }
    }
}

fn is_document(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| DOCUMENT_ENDINGS.contains(&ending)) || path.ends_with(".ci/run")
}

fn entries(dir: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(dir).map(|entries| entries.flatten().collect::<Vec<_>>());
    let mut entries: Vec<_> = entries
        .unwrap_or_default()
        .iter()
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                entry.path(),
            )
        })
        .collect();
    entries.sort();
    entries
}

#[expect(clippy::disallowed_methods, reason = "the rules are about files")]
fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| format!("{}: {error}", path.display()))
}

#[test]
fn tests_start_at_their_module() {
    let text = "//! A.\nfn a() {}\n#[cfg(test)]\nmod tests {\n}\n";
    assert_eq!(Source::new("a/src/a.rs", text).tests_from(), 3);
    let declared = "//! A.\n#[cfg(test)]\nmod tests;\nfn a() {}\n";
    assert_eq!(Source::new("a/src/a.rs", declared).tests_from(), 5);
    for path in ["a/src/tests.rs", "a/src/b_tests.rs", "a/tests/b/c.rs"] {
        assert_eq!(Source::new(path, text).tests_from(), 1, "{path}");
    }
}
