//! The traces in `fixtures/traces`: replayed whole, none without its scenario, none twice.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::replay::corpus;
use crate::replay::mirror::Mirror;
use crate::replay::player::play;
use crate::replay::recording::Recording;
use crate::target::in_process::InProcess;

/// The script that made them.
const SCENARIOS: &str = include_str!("../../../fixtures/traces/record.py");

/// Where they are.
fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/traces")
}

/// One of them: `blob/leases`.
pub(super) fn load(name: &str) -> Recording {
    corpus::load(&directory(), &format!("{name}.ndjson")).unwrap()
}

fn names() -> Vec<String> {
    let names = corpus::names(&directory()).unwrap();
    let stem = |name: &String| name.strip_suffix(".ndjson").unwrap().to_owned();
    names.iter().map(stem).collect()
}

/// `SERVICE/SCENARIO` of every `@scenario("SERVICE")` with the `def` below it, in order of name.
fn scenarios(script: &str) -> Vec<String> {
    let lines: Vec<&str> = script.lines().collect();
    let found = lines.windows(2).filter_map(|pair| {
        let service = pair[0].strip_prefix("@scenario(\"")?.strip_suffix("\")")?;
        let name = pair[1].strip_prefix("def ")?.split('(').next()?;
        Some(format!("{service}/{name}"))
    });
    let mut found: Vec<String> = found.collect();
    found.sort();
    found
}

/// The emulator answers every exchange of every trace as it was recorded, and the comparison
/// raises no alarm over a service that answers as recorded.
#[tokio::test]
async fn every_trace_replays_whole() {
    for name in names() {
        let recording = load(&name);
        let targets = [
            play(Arc::new(InProcess::default()), &recording).await,
            play(Arc::new(Mirror::of(&recording)), &recording).await,
        ];
        for played in targets {
            played.assert_whole(&recording, &name);
        }
    }
}

/// A trace whose scenario is gone, and a scenario that nobody recorded, are both mistakes.
#[test]
fn traces_and_scenarios_belong_together() {
    let scenarios = scenarios(SCENARIOS);
    assert!(scenarios.len() >= 13, "{scenarios:?}");
    assert_eq!(names(), scenarios);
}

/// Two traces of the same exchanges prove no more than one.
#[test]
fn no_trace_is_there_twice() {
    let mut seen = BTreeMap::new();
    for name in names() {
        let script: Vec<String> = load(&name)
            .interactions
            .iter()
            .map(|one| format!("{} {}", one.operation, one.response.status))
            .collect();
        assert!(!script.is_empty(), "{name}");
        if let Some(other) = seen.insert(script, name.clone()) {
            panic!("{name} repeats {other}");
        }
    }
}
