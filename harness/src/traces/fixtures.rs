//! Tests of the traces in `fixtures/traces`: all replay, all have a scenario, all differ.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::replay::corpus;
use crate::replay::mirror::Mirror;
use crate::replay::player::play;
use crate::replay::recording::Recording;
use crate::target::in_process::InProcess;

/// The script that recorded them.
const SCENARIOS: &str = include_str!("../../../fixtures/traces/record.py");

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/traces")
}

/// Loads a trace by its name: `blob/leases`.
pub(super) fn load(name: &str) -> Recording {
    corpus::load(&directory(), &format!("{name}.ndjson")).unwrap()
}

fn names() -> Vec<String> {
    let names = corpus::names(&directory()).unwrap();
    let stem = |name: &String| name.strip_suffix(".ndjson").unwrap().to_owned();
    names.iter().map(stem).collect()
}

/// Returns `SERVICE/SCENARIO` for every `@scenario("SERVICE")` with the `def` below it, ordered by
/// name.
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

/// The emulator answers every exchange of every trace as recorded, and the comparison reports no
/// difference for a service that answers as recorded.
#[tokio::test]
async fn every_trace_replays_completely() {
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

/// Every trace has a scenario, and every scenario is recorded.
#[test]
fn every_trace_has_a_scenario_and_vice_versa() {
    let scenarios = scenarios(SCENARIOS);
    assert!(scenarios.len() >= 13, "{scenarios:?}");
    assert_eq!(names(), scenarios);
}

/// A trace with the same exchanges as another tests nothing new.
#[test]
fn no_trace_repeats_another() {
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
