//! Inserts the bugs into a file: all of them at once, each behind its switch.

use std::collections::BTreeSet;

use crate::{Area, Bug, Change, bugs};

/// The placeholder of the switch in a replacement.
const SWITCH: &str = "BUG";

/// Returns the files that bugs change.
pub fn files() -> BTreeSet<&'static str> {
    let changes = bugs().flat_map(|(_, bug)| &bug.change);
    changes.map(|change| change.file.as_str()).collect()
}

/// Returns a file's text with all of its bugs.
///
/// # Errors
/// One line for each change whose text does not occur exactly once, or overlaps another's.
pub fn switched(file: &str, text: &str) -> Result<String, Vec<String>> {
    switched_by(bugs(), file, text)
}

fn switched_by(
    bugs: impl Iterator<Item = (Area, &'static Bug)>,
    file: &str,
    text: &str,
) -> Result<String, Vec<String>> {
    let of_file = |(area, bug): (Area, &'static Bug)| {
        let changes = bug.change.iter().filter(|change| change.file == file);
        changes.map(move |change| (area, bug, change))
    };
    let mut wrong = Vec::new();
    let mut places = Vec::new();
    for (area, bug, change) in bugs.flat_map(of_file) {
        let found: Vec<usize> = text.match_indices(&change.text).map(|(at, _)| at).collect();
        match found[..] {
            [at] => places.push((at, area, bug, change)),
            _ => wrong.push(format!(
                "{file}: the text that `{}` replaces occurs {} times and must occur once; \
                 correct it in {}:\n{}",
                bug.id,
                found.len(),
                area.file(),
                change.text
            )),
        }
    }
    places.sort_by_key(|(at, ..)| *at);
    let mut out = String::new();
    let mut done = 0;
    for (at, area, bug, change) in places {
        if at < done {
            wrong.push(format!(
                "{file}: the text that `{}` replaces overlaps that of the previous bug; correct \
                 it in {}",
                bug.id,
                area.file()
            ));
            continue;
        }
        out.push_str(&text[done..at]);
        out.push_str(&replacement(bug, change));
        done = at + change.text.len();
    }
    out.push_str(&text[done..]);
    if wrong.is_empty() {
        Ok(out)
    } else {
        Err(wrong)
    }
}

fn replacement(bug: &Bug, change: &Change) -> String {
    let switch = format!("smalt_planted::is_on(\"{}\")", bug.id);
    change.with.replace(SWITCH, &switch)
}

/// Adds the switch to the dependencies in the manifest of a crate with bugs.
///
/// # Errors
/// Fails if the manifest has no line to insert it after.
pub fn manifest(text: &str) -> Result<String, String> {
    const DEPENDENCIES: &str = "\n[dependencies]\n";
    let line = "smalt-planted = { workspace = true, features = [\"switched\"] }\n";
    let (before, after) = text.split_once(DEPENDENCIES).ok_or("no [dependencies]")?;
    Ok(format!("{before}{DEPENDENCIES}{line}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bug(id: &str, text: &str, with: &str) -> &'static Bug {
        Box::leak(Box::new(Bug {
            id: id.to_owned(),
            wrong: String::new(),
            source: String::new(),
            caught_by: Vec::new(),
            change: vec![Change {
                file: "a.rs".to_owned(),
                text: text.to_owned(),
                with: with.to_owned(),
            }],
        }))
    }

    fn told(bugs: &[&'static Bug], text: &str) -> Result<String, Vec<String>> {
        let bugs = bugs.iter().map(|bug| (Area::Store, *bug));
        switched_by(bugs, "a.rs", text)
    }

    #[test]
    fn every_bug_of_a_file_has_its_switch() {
        let bugs = [bug("two", "c", "c || BUG"), bug("one", "a", "a && !BUG")];
        assert_eq!(
            told(&bugs, "if a { c }").unwrap(),
            "if a && !smalt_planted::is_on(\"one\") { c || smalt_planted::is_on(\"two\") }"
        );
        let elsewhere = bugs.into_iter().map(|bug| (Area::Store, bug));
        assert_eq!(switched_by(elsewhere, "b.rs", "a c").unwrap(), "a c");
    }

    #[test]
    fn a_missing_or_repeated_text_is_reported_with_its_bug() {
        let one = [bug("one", "a", "BUG")];
        for (text, times) in [("b", 0), ("a a", 2)] {
            let told = told(&one, text).unwrap_err();
            assert_eq!(told.len(), 1);
            let start = format!("a.rs: the text that `one` replaces occurs {times} times");
            assert!(told[0].starts_with(&start), "{}", told[0]);
            assert!(told[0].contains("fixtures/planted/store.toml"));
        }
        let overlapping = [bug("one", "a b", "BUG"), bug("two", "b c", "BUG")];
        let told = told(&overlapping, "a b c").unwrap_err();
        assert!(told[0].contains("`two` replaces overlaps"), "{told:?}");
    }

    #[test]
    fn a_crate_with_bugs_depends_on_the_switch() {
        let changed = manifest("[package]\n\n[dependencies]\nbytes = \"1\"\n").unwrap();
        let expected =
            "[dependencies]\nsmalt-planted = { workspace = true, features = [\"switched\"] }\n";
        assert!(changed.contains(expected), "{changed}");
        assert!(manifest("[package]\n").is_err());
    }
}
