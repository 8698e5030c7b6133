//! Checks documents: the README stays short, its figures are those of the page that measured them,
//! and links and commands refer to files that exist.

use std::path::Path;

use crate::finding::Finding;
use crate::tree::Tree;

/// A longer README would not be read.
const README_LINES_MAX: usize = 150;

/// Rows of docs/speed.md that the README calls small reads.
const READS: [&str; 4] = ["head", "get 4 KiB", "peek", "get entity"];

pub(crate) fn readme(readme: &str, speed: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = readme.lines().count();
    if lines > README_LINES_MAX {
        let what = format!("has {lines} lines; the limit is {README_LINES_MAX}");
        findings.push(Finding::new("README.md", 0, what));
    }
    let ratios = [
        ("small reads", ratios(speed, |row| READS.contains(&row))),
        (
            "durable writes",
            ratios(speed, |row| row.ends_with(", durable")),
        ),
    ];
    for (name, ratios) in ratios {
        let bound = |pick: fn(f64, f64) -> f64| ratios.iter().copied().reduce(pick);
        let (Some(least), Some(most)) = (bound(f64::min), bound(f64::max)) else {
            findings.push(Finding::new(
                "docs/speed.md",
                0,
                format!("has no row for {name}"),
            ));
            continue;
        };
        let claim = format!("{least:.0} to {most:.0} times its {name}");
        if !readme.contains(&claim) {
            let what = format!("does not say \"{claim}\", which docs/speed.md measured");
            findings.push(Finding::new("README.md", 0, what));
        }
    }
    findings
}

/// Returns links to missing files, and `bash` commands with missing scripts.
pub(crate) fn names(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let root = Tree::root();
    let pages = tree
        .documents
        .iter()
        .filter(|document| document.path.ends_with(".md"));
    for page in pages {
        let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
        for (line, text) in (1..).zip(page.text.lines()) {
            let scripts = text
                .split("bash ")
                .skip(1)
                .filter_map(script)
                .map(|name| root.join(name));
            let links = text
                .split("](")
                .skip(1)
                .filter_map(link)
                .map(|name| root.join(folder).join(name));
            for file in scripts.chain(links).filter(|file| !file.exists()) {
                let what = format!("names {}, which does not exist", file.display());
                findings.push(Finding::new(&page.path, line, what));
            }
        }
    }
    findings
}

/// Returns `ci/check.sh` for `ci/check.sh 20`.
fn script(command: &str) -> Option<&str> {
    let name = command.split([' ', '`', '"', ')']).next()?;
    (name.starts_with("ci/") || name.starts_with(".ci/")).then_some(name)
}

/// Returns `docs/time.md` for `docs/time.md#moved) ...`; `None` for URLs and anchors in the same
/// page.
fn link(rest: &str) -> Option<&str> {
    let name = rest.split([')', '#']).next()?;
    (!name.is_empty() && !name.contains(':')).then_some(name)
}

/// Returns smalt's operations per second divided by Azurite's, for the wanted rows.
fn ratios(speed: &str, wanted: impl Fn(&str) -> bool) -> Vec<f64> {
    let number = |cell: &str| cell.replace(',', "").parse::<f64>().ok();
    speed
        .lines()
        .filter_map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let row = cells.get(1)?.strip_suffix(", op/s")?;
            let rates = (number(cells.get(2)?)?, number(cells.get(5)?)?);
            wanted(row).then_some(rates.0 / rates.1)
        })
        .collect()
}

#[test]
fn a_stale_figure_and_a_long_readme_are_found() {
    let speed = "\
| head, op/s | 2,000 | 9,000 | 0.2 | 100 | |
| peek, op/s | 900 | 9,000 | 0.1 | 100 | |
| put 4 KiB, durable, op/s | 500 | 9,000 | 0.1 | 100 | |
";
    let fresh = "9 to 20 times its small reads, 5 to 5 times its durable writes";
    assert_eq!(readme(fresh, speed), []);
    assert_eq!(readme(&fresh.replace("9 to", "8 to"), speed).len(), 1);
    assert_eq!(
        readme(&format!("{fresh}{}", "\n".repeat(200)), speed).len(),
        1
    );
    assert_eq!(readme(fresh, "").len(), 2);
}

#[test]
fn file_names_are_parsed_from_a_line() {
    assert_eq!(script("ci/crash.sh 20` kills"), Some("ci/crash.sh"));
    assert_eq!(script("-c true"), None);
    assert_eq!(link("docs/time.md#moved), and"), Some("docs/time.md"));
    assert_eq!(link("#moved)"), None);
    assert_eq!(link("https://example.com/a)"), None);
}
