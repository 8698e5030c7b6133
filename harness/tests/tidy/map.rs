//! Compares ARCHITECTURE.md with the tree: its code map must name exactly the modules of each
//! crate, and its table of keys the prefixes in the code.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::tree::{Source, Tree};

const PAGE: &str = "ARCHITECTURE.md";
const KEYS: &str = "emulator/src/keys.rs";

/// Returns the differences between the page and the tree.
pub(crate) fn judge(tree: &Tree) -> Vec<Finding> {
    let page = tree.document(PAGE);
    let mut findings = modules(page, &tree.sources);
    findings.extend(prefixes(page, &tree.sources));
    findings
}

/// Returns modules that the code map does not name, and names of files and folders that do not
/// exist.
fn modules(page: &str, sources: &[Source]) -> Vec<Finding> {
    let map = between(page, "## Code map", "\n## ");
    let mut findings = Vec::new();
    for section in map.split("\n### `").skip(1) {
        let Some((folder, text)) = section.split_once('`') else {
            continue;
        };
        let paths = sources.iter().map(|source| source.path.as_str());
        let paths: Vec<_> = paths.filter(|path| path.starts_with(folder)).collect();
        let named: BTreeSet<_> = text.split('`').skip(1).step_by(2).collect();
        let is_path = |name: &str| {
            name.ends_with('/') || (name.ends_with(".rs") && !name.contains(char::is_whitespace))
        };
        for name in named.iter().filter(|name| is_path(name)) {
            let is_there = |path: &&str| {
                let below = format!("/{path}");
                below.ends_with(&format!("/{name}"))
                    || (name.ends_with('/') && below.contains(&format!("/{name}")))
            };
            let is_whole = sources.iter().any(|source| source.path == *name);
            if !is_whole && !paths.iter().any(is_there) {
                let what = format!("the code map names `{name}`, which is not in {folder}");
                findings.push(Finding::new(PAGE, 0, what));
            }
        }
        for module in top_modules(folder, &paths) {
            let below = format!("{module}/");
            let file = format!("{module}.rs");
            if !named
                .iter()
                .any(|name| *name == file || name.starts_with(&below))
            {
                let what = format!("the code map does not name `{file}` of {folder}");
                findings.push(Finding::new(PAGE, 0, what));
            }
        }
    }
    if findings.is_empty() && !map.contains("\n### `") {
        findings.push(Finding::new(PAGE, 0, "has no code map"));
    }
    findings
}

/// Returns the modules at the top of a crate, without its roots and tests.
fn top_modules<'a>(folder: &str, paths: &[&'a str]) -> BTreeSet<&'a str> {
    let sources = format!("{folder}src/");
    let below = paths.iter().filter_map(|path| path.strip_prefix(&*sources));
    let tops = below.filter_map(|path| path.split('/').next());
    tops.map(|top| top.trim_end_matches(".rs"))
        .filter(|top| !["lib", "main"].contains(top) && !top.ends_with("tests"))
        .collect()
}

/// Returns prefixes of keys that only the page or only the code has.
fn prefixes(page: &str, sources: &[Source]) -> Vec<Finding> {
    let table = between(page, "The operations' keys", "\n\nA *generation*");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let told: BTreeSet<_> = rows.filter_map(|row| row.get(..2)).collect();
    let code = sources.iter().find(|source| source.path == KEYS);
    let lines = code.iter().flat_map(|source| &source.code);
    let used: BTreeSet<_> = lines
        .filter_map(|line| {
            line.strip_prefix("const ")?
                .split_once(": u8 = 0x")?
                .1
                .get(..2)
        })
        .collect();
    if used.is_empty() {
        return vec![Finding::new(KEYS, 0, "has no prefixes")];
    }
    let differ = used.symmetric_difference(&told);
    differ
        .map(|prefix| {
            let (has, lacks) = if used.contains(prefix) {
                (KEYS, PAGE)
            } else {
                (PAGE, KEYS)
            };
            Finding::new(lacks, 0, format!("lacks key prefix {prefix} of {has}"))
        })
        .collect()
}

/// Returns the text after `from`, up to `to` or the end.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let behind = text.split_once(from).map_or("", |(_, behind)| behind);
    behind.split_once(to).map_or(behind, |(before, _)| before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(findings: Vec<Finding>) -> Vec<String> {
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_stale_map_is_found() {
        let sources = [
            "x/src/lib.rs",
            "x/src/a.rs",
            "x/src/b/c.rs",
            "x/src/b.rs",
            "x/src/a_tests.rs",
        ];
        let sources = sources.map(|path| Source::new(path, ""));
        let map = |text: &str| {
            format!("# A\n\n## Code map\n\n### `x/`: it\n\n{text}\n\n## B\n\n`e.rs`\n")
        };
        assert_eq!(told(modules(&map("`a.rs`, `b/`"), &sources)), [""; 0]);
        assert_eq!(
            told(modules(&map("`a.rs`; `c.rs` of `b.rs`"), &sources)),
            [""; 0]
        );
        assert_eq!(
            told(modules(&map("`a.rs`, `d.rs`, `c/`, `b c.rs`"), &sources)),
            [
                "the code map names `c/`, which is not in x/",
                "the code map names `d.rs`, which is not in x/",
                "the code map does not name `b.rs` of x/",
            ]
        );
        assert_eq!(told(modules("# A\n", &sources)), ["has no code map"]);
    }

    #[test]
    fn a_prefix_without_its_row_is_found() {
        let code = "const A: u8 = 0x10;\nconst B: u8 = 0x1a;\nconst C: usize = 0x20;\n";
        let sources = [Source::new(KEYS, code)];
        let page = |rows: &str| format!("The operations' keys (`keys.rs`):\n\n| p |\n{rows}");
        assert_eq!(
            told(prefixes(&page("| `10` | a |\n| `1a` | |\n"), &sources)),
            [""; 0]
        );
        assert_eq!(
            told(prefixes(&page("| `10` | a |\n| `30` | |\n"), &sources)),
            [
                "lacks key prefix 1a of emulator/src/keys.rs",
                "lacks key prefix 30 of ARCHITECTURE.md"
            ]
        );
        assert_eq!(prefixes(&page(""), &[]).len(), 1);
    }
}
