//! Planted bugs: their data fits the sources, and the products do not mention them.

use smalt_planted::patch;

use crate::finding::Finding;
use crate::tree::{Source, Tree};

/// Folders of the products and their tests.
const PRODUCTS: &[&str] = &[
    "protocol/",
    "emulator/",
    "sleeve/",
    "worker/",
    "sweeper/",
    "listener/",
];
/// The word that no file in them contains.
const WORD: &str = "planted";

/// Returns changes of `fixtures/planted` that do not fit the sources.
pub(crate) fn patches(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in patch::files() {
        let Some(source) = sources.iter().find(|source| source.path == file) else {
            let what = "fixtures/planted changes it, but it does not exist".to_owned();
            findings.push(Finding::new(file, 0, what));
            continue;
        };
        let text = source.lines.join("\n") + "\n";
        let wrong = patch::switched(file, &text).err().unwrap_or_default();
        findings.extend(wrong.into_iter().map(|what| Finding::new(file, 0, what)));
    }
    findings
}

/// Returns lines of products that mention planted bugs.
pub(crate) fn products(tree: &Tree) -> Vec<Finding> {
    let sources = tree.sources.iter().map(|s| (&s.path, s.lines.join("\n")));
    let documents = tree.documents.iter().map(|d| (&d.path, d.text.clone()));
    let all = sources.chain(documents);
    let ours = all.filter(|(path, _)| PRODUCTS.iter().any(|folder| path.starts_with(folder)));
    ours.flat_map(|(path, text)| speaking(path, &text))
        .collect()
}

fn speaking(path: &str, text: &str) -> Vec<Finding> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains(WORD));
    lines
        .map(|(at, line)| Finding::new(path, at + 1, line.trim().to_owned()))
        .collect()
}

/// The page with the table of bugs and the checks that catch them.
const PAGE: &str = "docs/planted.md";
/// The markers around the table.
const TABLE: [&str; 2] = ["<!-- planted: begin -->", "<!-- planted: end -->"];

/// Returns bugs without exactly one row in the page's table, and rows of unknown bugs.
pub(crate) fn table(page: &str, ids: impl Iterator<Item = &'static str>) -> Vec<Finding> {
    let mut unseen: Vec<&str> = ids.collect();
    let mut findings = Vec::new();
    let mut is_inside = false;
    for (at, line) in page.lines().enumerate() {
        is_inside = (is_inside || line == TABLE[0]) && line != TABLE[1];
        let Some((_, rest)) = line.split_once('`').filter(|_| is_inside) else {
            continue;
        };
        let id = rest.split('`').next().unwrap_or_default();
        match unseen.iter().position(|known| *known == id) {
            Some(known) => drop(unseen.swap_remove(known)),
            None => {
                let what = format!("`{id}` is unknown, or has a second row");
                findings.push(Finding::new(PAGE, at + 1, what));
            }
        }
    }
    let missing = unseen.iter();
    findings.extend(missing.map(|id| Finding::new(PAGE, 0, format!("no row for `{id}`"))));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_without_its_file_or_text_is_found() {
        let files = patch::files();
        assert_eq!(patches(&[]).len(), files.len());
        let emptied: Vec<_> = files.iter().map(|file| Source::new(file, "")).collect();
        let told = patches(&emptied);
        assert!(told.len() > files.len());
        assert!(
            told[0].what.contains("occurs 0 times and"),
            "{}",
            told[0].what
        );
    }

    #[test]
    fn a_line_for_a_planted_bug_is_found() {
        assert_eq!(speaking("a.rs", "let a = 1;\n").len(), 0);
        let told = speaking("a.rs", "let a = 1;\nif planted(\"one\") {\n");
        assert_eq!(told[0].to_string(), "a.rs:2: if planted(\"one\") {");
    }

    #[test]
    fn a_bug_has_one_row() {
        let told = |rows: &str| {
            let page = format!("`other`\n{}\n{rows}{}\n`other`\n", TABLE[0], TABLE[1]);
            let findings = table(&page, ["one"].into_iter());
            let told = findings.iter().map(ToString::to_string);
            told.collect::<Vec<_>>()
        };
        assert_eq!(told("| emulator `one` | `x` is wrong. |\n"), [""; 0]);
        assert_eq!(told(""), ["docs/planted.md:0: no row for `one`"]);
        let again = "docs/planted.md:4: `one` is unknown, or has a second row";
        assert_eq!(told("| emulator `one` |\n| emulator `one` |\n"), [again]);
    }
}
