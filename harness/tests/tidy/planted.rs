//! Planted bugs: each in its one place, and in no product.

use smalt_planted::Bug;
use toml::Value;

use crate::finding::Finding;
use crate::manifests::Manifest;
use crate::tree::Source;

/// What a planted line says, up to the bug's name.
const SITE: &str = "planted(\"";
/// The package of the list, which products see under the feature alone.
const PACKAGE: &str = "smalt-planted";
/// The feature.
const FEATURE: &str = "planted";
/// Who may ask the products for it.
const HARNESS: &str = "smalt-harness";

/// Bugs that are not exactly where the list says, and planted lines that are not in the list.
pub(crate) fn sites(sources: &[Source], bugs: impl Iterator<Item = &'static Bug>) -> Vec<Finding> {
    let mut unseen: Vec<&Bug> = bugs.collect();
    let mut findings = Vec::new();
    for source in sources {
        for (at, code) in source.code.iter().enumerate() {
            // Quotes are blank in `code`: the name stands in the line itself.
            for (column, _) in code.match_indices(SITE) {
                let line = &source.lines[at];
                if let Err(what) = site(source, line, column, &mut unseen) {
                    findings.push(Finding::new(&source.path, at + 1, what));
                }
            }
        }
    }
    let missing = unseen.iter();
    findings.extend(missing.map(|bug| {
        let what = format!("`{}` is in the list and not planted", bug.id);
        Finding::new(bug.place, 0, what)
    }));
    findings
}

fn site(source: &Source, line: &str, column: usize, unseen: &mut Vec<&Bug>) -> Result<(), String> {
    let after = line.get(column + SITE.len()..).unwrap_or_default();
    let Some((id, rest)) = after.split_once('"') else {
        return Err("a planted bug is named on its line".to_owned());
    };
    if line.trim_start().starts_with("if planted(") && rest.starts_with(") {") {
        return Err(format!(
            "`{id}` is more than one line: make it part of what is there"
        ));
    }
    let known = unseen.iter().position(|bug| bug.id == id);
    let Some(known) = known else {
        return Err(format!("`{id}` is not in the list, or planted twice"));
    };
    let bug = unseen.swap_remove(known);
    if bug.place != source.path {
        return Err(format!("`{id}` belongs into {}", bug.place));
    }
    Ok(())
}

/// Where the table of what catches what stands.
const PAGE: &str = "docs/planted.md";
/// What encloses the table.
const TABLE: [&str; 2] = ["<!-- planted: begin -->", "<!-- planted: end -->"];

/// Bugs that the page's table does not name once, and rows of bugs that are gone.
pub(crate) fn table(page: &str, bugs: impl Iterator<Item = &'static Bug>) -> Vec<Finding> {
    let mut unseen: Vec<&Bug> = bugs.collect();
    let mut findings = Vec::new();
    let mut is_inside = false;
    for (at, line) in page.lines().enumerate() {
        is_inside = (is_inside || line == TABLE[0]) && line != TABLE[1];
        let Some((_, rest)) = line.split_once('`').filter(|_| is_inside) else {
            continue;
        };
        let id = rest.split('`').next().unwrap_or_default();
        match unseen.iter().position(|bug| bug.id == id) {
            Some(known) => drop(unseen.swap_remove(known)),
            None => {
                let what = format!("`{id}` is not in the list, or has a second row");
                findings.push(Finding::new(PAGE, at + 1, what));
            }
        }
    }
    let missing = unseen.iter();
    findings.extend(missing.map(|bug| Finding::new(PAGE, 0, format!("no row for `{}`", bug.id))));
    findings
}

/// Ways for the planted bugs into a product.
pub(crate) fn features(manifests: &[Manifest]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in manifests {
        let package = manifest.package().unwrap_or_default();
        for dependency in manifest.dependencies() {
            if dependency.name != PACKAGE || package == HARNESS {
                continue;
            }
            let behind = manifest.features_with(PACKAGE) == [FEATURE];
            if dependency.is_for_tests || !dependency.is_optional || !behind {
                let what = format!("{PACKAGE} belongs behind the feature `{FEATURE}` alone");
                findings.push(manifest.finding(PACKAGE, what));
            }
        }
        findings.extend(enabling(manifest, package));
        if asks_for_it(&Value::Table(manifest.table.clone())) {
            let what = format!("a dependency asks for the feature `{FEATURE}`");
            findings.push(manifest.finding("", what));
        }
    }
    findings
}

/// Features that turn the feature on: only the harness's own of the same name does.
fn enabling(manifest: &Manifest, package: &str) -> Vec<Finding> {
    let suffix = format!("/{FEATURE}");
    let turns_on = |entry: &Value| {
        let entry = entry.as_str().unwrap_or_default();
        entry == FEATURE || entry.ends_with(&suffix)
    };
    let features = manifest.table.get("features").and_then(Value::as_table);
    let features = features.into_iter().flatten();
    let found = features.filter(|(name, entries)| {
        let is_allowed = package == HARNESS && *name == FEATURE;
        !is_allowed && entries.as_array().is_some_and(|e| e.iter().any(turns_on))
    });
    found
        .map(|(name, _)| manifest.finding(name, format!("`{name}` turns on `{FEATURE}`")))
        .collect()
}

/// Whether some `features = [...]` of a dependency names it.
fn asks_for_it(value: &Value) -> bool {
    let Some(table) = value.as_table() else {
        return false;
    };
    table.iter().any(|(key, value)| {
        let named = value.as_array().filter(|_| key == "features");
        named.is_some_and(|names| names.iter().any(|n| n.as_str() == Some(FEATURE)))
            || asks_for_it(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    static ONE: Bug = Bug {
        id: "one",
        place: "a.rs",
        wrong: "",
        source: "",
        caught_by: &[],
    };

    fn told(text: &str) -> Vec<String> {
        let findings = sites(&[Source::new("a.rs", text)], [&ONE].into_iter());
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_bug_has_one_line_in_its_file() {
        assert_eq!(told("if is_held || planted(\"one\") {\n"), [""; 0]);
        let missing = "a.rs:0: `one` is in the list and not planted";
        assert_eq!(told("// planted(\"one\")\n"), [missing]);
        assert_eq!(
            told("let a = planted(\"one\");\nlet b = planted(\"one\");\n"),
            ["a.rs:2: `one` is not in the list, or planted twice"]
        );
        assert_eq!(
            told("let a = planted(\"other\");\n"),
            [
                "a.rs:1: `other` is not in the list, or planted twice",
                missing
            ]
        );
        let several = "a.rs:1: `one` is more than one line: make it part of what is there";
        assert_eq!(told("if planted(\"one\") {\n"), [several, missing]);
        let elsewhere = sites(
            &[Source::new("b.rs", "let a = planted(\"one\");\n")],
            [&ONE].into_iter(),
        );
        assert_eq!(elsewhere[0].what, "`one` belongs into a.rs");
    }

    #[test]
    fn a_bug_has_one_row() {
        let told = |rows: &str| {
            let page = format!("`other`\n{}\n{rows}{}\n`other`\n", TABLE[0], TABLE[1]);
            let findings = table(&page, [&ONE].into_iter());
            let told = findings.iter().map(ToString::to_string);
            told.collect::<Vec<_>>()
        };
        assert_eq!(told("| emulator `one` | `x` is wrong. |\n"), [""; 0]);
        assert_eq!(told(""), ["docs/planted.md:0: no row for `one`"]);
        let again = "docs/planted.md:4: `one` is not in the list, or has a second row";
        assert_eq!(told("| emulator `one` |\n| emulator `one` |\n"), [again]);
    }

    fn found(package: &str, lines: &str) -> usize {
        let text = format!("[package]\nname = \"{package}\"\n{lines}");
        features(&[Manifest::parse("a/Cargo.toml", &text)]).len()
    }

    #[test]
    fn a_way_into_a_product_is_found() {
        let optional =
            "[dependencies]\nsmalt-planted = { workspace = true, optional = true }\n[features]\n";
        let behind = |features: &str| found("smalt", &format!("{optional}{features}"));
        assert_eq!(behind("planted = [\"dep:smalt-planted\"]\n"), 0);
        assert_eq!(behind("sdk = [\"dep:smalt-planted\"]\n"), 1);
        let by_default = "default = [\"planted\"]\nplanted = [\"dep:smalt-planted\"]\n";
        assert_eq!(behind(by_default), 1);
        let always = "[dependencies]\nsmalt-planted.workspace = true\n";
        assert_eq!(found("smalt", always), 1);
        assert_eq!(found("smalt-harness", always), 0);
        let passed_on = "[features]\nplanted = [\"smalt-sleeve/planted\"]\n";
        assert_eq!(found("smalt-sweeper", passed_on), 1);
        assert_eq!(found("smalt-harness", passed_on), 0);
        let asked = "[dependencies]\nsmalt = { workspace = true, features = [\"planted\"] }\n";
        assert_eq!(found("smalt-harness", asked), 1);
        let pinned =
            "[workspace.dependencies]\nsmalt = { path = \"x\", features = [\"planted\"] }\n";
        assert_eq!(found("", pinned), 1);
    }
}
