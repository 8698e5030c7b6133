//! Checks the page of requirements: each row has a place and a proof, and both exist.

use std::collections::HashSet;

use crate::finding::Finding;
use crate::tree::{Source, Tree};

const PAGE: &str = "docs/requirements.md";
/// Introduces what nothing shows.
const OPEN: &str = "open:";

/// Returns rows without a place or a proof, and places and proofs that do not exist.
pub(crate) fn judge(page: &str, sources: &[Source]) -> Vec<Finding> {
    let functions = functions(sources);
    let mut findings = Vec::new();
    let mut ids = HashSet::new();
    for (line, text) in (1..).zip(page.lines()) {
        let mut told = |what: String| findings.push(Finding::new(PAGE, line, what));
        if !text.starts_with('|') || text.starts_with("| id |") || text.starts_with("| ---") {
            continue;
        }
        let cells: Vec<_> = text.split('|').map(str::trim).collect();
        let [_, id, _, place, shown, _] = cells[..] else {
            told("is not a row of four cells".to_owned());
            continue;
        };
        if !ids.insert(id) {
            told(format!("{id} has a second row"));
        }
        let (proof, open) = shown.split_once(OPEN).unwrap_or((shown, ""));
        if quoted(place).count() == 0 {
            told(format!("{id} has no place"));
        }
        if quoted(proof).count() == 0 && open.trim().is_empty() {
            told(format!("{id} has no proof and does not say `{OPEN}`"));
        }
        let places = quoted(place).filter(|name| !Tree::root().join(name).exists());
        let proofs = quoted(proof).filter(|name| !is_proof(name, &functions));
        for name in places.chain(proofs) {
            told(format!("{id} names `{name}`, which does not exist"));
        }
    }
    if ids.is_empty() {
        findings.push(Finding::new(PAGE, 0, "has no rows"));
    }
    findings
}

/// Whether a name is that of a script, a file of cases or a function.
fn is_proof(name: &str, functions: &HashSet<&str>) -> bool {
    if name.starts_with("ci/") {
        return Tree::root().join(name).exists();
    }
    if name.ends_with(".case") {
        return Tree::root().join("fixtures/cases").join(name).exists();
    }
    functions.contains(name)
}

fn functions(sources: &[Source]) -> HashSet<&str> {
    let lines = sources.iter().flat_map(|source| &source.code);
    lines
        .filter_map(|line| line.split_once("fn ")?.1.split(['(', '<']).next())
        .collect()
}

/// Returns the texts between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(row: &str) -> Vec<String> {
        let sources = [Source::new("a.rs", "async fn it_holds() {}\n")];
        let page = format!("| id | what | place | shown by |\n| --- | --- | --- | --- |\n{row}\n");
        let findings = judge(&page, &sources);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_row_without_a_proof_is_found() {
        assert_eq!(told("| A1 | x | `docs` | open: nobody looks |"), [""; 0]);
        let without = "A1 has no proof and does not say `open:`";
        assert_eq!(told("| A1 | x | `docs` | soon |"), [without]);
        assert_eq!(told("| A1 | x | `docs` | open: |"), [without]);
        assert_eq!(told("| A1 | x | here | `it_holds` |"), ["A1 has no place"]);
        assert_eq!(
            told("| A1 | x | `docs` |"),
            ["is not a row of four cells", "has no rows"]
        );
    }

    #[test]
    fn a_stale_name_is_found() {
        let row = "| A1 | x | `README.md` | `it_holds`, `ci/check.sh`, `emulator/blobs.case` |";
        assert_eq!(told(row), [""; 0]);
        assert_eq!(
            told("| A1 | x | `no.rs` | `it_fails`, `ci/no.sh`, `no.case`; open: `it` |"),
            ["no.rs", "it_fails", "ci/no.sh", "no.case"]
                .map(|name| format!("A1 names `{name}`, which does not exist"))
        );
        assert_eq!(told(&format!("{row}\n{row}")), ["A1 has a second row"]);
    }
}
