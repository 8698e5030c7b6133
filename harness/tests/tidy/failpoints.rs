//! `harness check crash --part failpoints` visits every step at which the store can be told to die.
//!
//! The command visits the steps of one list, `POINTS`, and fails when no child reached one of them.
//! So it is enough to check that the list and the steps are the same.

use crate::finding::Finding;
use crate::tree::Source;

const STORE: &str = "emulator/src/store/";
const LIST: &str = "emulator/src/store/failpoint.rs";

/// Returns steps that are not in the list or in it twice, and names that occur only in the list.
pub(crate) fn judge(sources: &[Source]) -> Vec<Finding> {
    let listed: Vec<_> = sources
        .iter()
        .filter(|s| s.path == LIST)
        .flat_map(listed)
        .collect();
    let store = sources.iter().filter(|s| s.path.starts_with(STORE));
    let reached: Vec<_> = store.flat_map(reached).collect();
    let mut findings = Vec::new();
    for (path, line, name) in &reached {
        if !listed.iter().any(|(_, listed)| listed == name) {
            findings.push(Finding::new(
                path,
                *line,
                format!("{name:?} is not in POINTS"),
            ));
        }
    }
    for (line, name) in &listed {
        if reached.iter().filter(|(.., found)| found == name).count() != 1 {
            let what = format!("{name:?} does not name exactly one step");
            findings.push(Finding::new(LIST, *line, what));
        }
    }
    if listed.is_empty() {
        findings.push(Finding::new(LIST, 0, "lists no steps"));
    }
    findings
}

/// Returns lines and names of the list: the quoted strings up to its end.
fn listed(source: &Source) -> Vec<(usize, String)> {
    let lines = (1..).zip(&source.lines);
    let list = lines
        .skip_while(|(_, line)| !line.contains("POINTS: &[&str] = &["))
        .take_while(|(_, line)| line.trim() != "];");
    list.filter_map(|(at, line)| Some((at, quoted(line)?)))
        .collect()
}

/// Returns paths, lines and names of steps.
fn reached(source: &Source) -> Vec<(String, usize, String)> {
    let lines = (1..).zip(&source.lines);
    lines
        .filter_map(|(at, line)| {
            let (_, rest) = line.split_once("failpoint::reach(")?;
            Some((source.path.clone(), at, quoted(rest)?))
        })
        .collect()
}

fn quoted(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('"')?;
    let (name, _) = rest.split_once('"')?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(list: &str, steps: &str) -> Vec<String> {
        let sources = [
            Source::new(
                LIST,
                &format!("pub const POINTS: &[&str] = &[\n{list}];\n\"no.step\"\n"),
            ),
            Source::new("emulator/src/store/a.rs", steps),
        ];
        let findings = judge(&sources);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_unvisited_step_is_found() {
        let two = "    \"a.one\",\n    \"a.two\",\n";
        let steps = "failpoint::reach(\"a.one\");\nfailpoint::reach(\"a.two\");\n";
        assert_eq!(found(two, steps), [""; 0]);
        assert_eq!(
            found("    \"a.one\",\n", steps),
            ["emulator/src/store/a.rs:2: \"a.two\" is not in POINTS"]
        );
        let stale = "emulator/src/store/failpoint.rs:3: \"a.two\" does not name exactly one step";
        assert_eq!(found(two, "failpoint::reach(\"a.one\");\n"), [stale]);
        let twice = format!("{steps}failpoint::reach(\"a.two\");\n");
        assert_eq!(found(two, &twice), [stale]);
        assert!(found("", "").contains(&format!("{LIST}:0: lists no steps")));
    }
}
