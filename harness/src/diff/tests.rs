//! Tests the comparison with services that are alike and with one that is not.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::document;
use super::finding::{Finding, Lane, primary};
use super::ledger::Ledger;
use super::options::{Seen, load};
use super::run;
use super::scripts::{self, Histories};
use super::side::{AZURITE, Binaries, SMALT, Side, Standing};
use super::triage::judge;
use crate::replay::compare::{Aspect, Difference};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

async fn inproc() -> Standing {
    let binaries = Binaries::default();
    Standing::up(&Side::InProcess, &binaries).await.unwrap()
}

/// A service does not differ from itself.
#[tokio::test]
async fn smalt_does_not_differ_from_itself() {
    let which = Histories {
        seed: 0,
        count: 25,
        tables: 10,
        operations: 40,
        wait_s_max: 7 * 24 * 3_600,
    };
    let (left, right) = (inproc().await, inproc().await);
    let mut exchanges = 0;
    for script in scripts::histories(&which).await.unwrap() {
        let recording = run::left(&script, &left).await.unwrap();
        let compared = run::compare(&script, SMALT, &recording, &right).await;
        assert_eq!(compared.problems, Vec::<String>::new(), "{}", script.name);
        let findings: Vec<String> = compared.findings.iter().map(Finding::to_string).collect();
        assert_eq!(findings, Vec::<String>::new());
        exchanges += compared.compared;
    }
    assert!(exchanges > 500, "{exchanges}");
}

/// Recorded answers of Azurite, to requests of ours and to Microsoft's SDK, differ from smalt's
/// exactly as the ledger says.
#[tokio::test]
async fn azurite_differs_as_the_ledger_says() {
    let ledger = load(&root().join("fixtures/differences.toml")).unwrap();
    let right = inproc().await;
    let mut seen = Seen::default();
    let folders = ["fixtures/azurite", "fixtures/traces-azurite"];
    let recorded = folders.map(|name| scripts::traces(&root().join(name)).unwrap());
    assert!(recorded[0].len() >= 47 && recorded[1].len() >= 8);
    for script in recorded.into_iter().flatten() {
        assert_eq!(script.recording.sdk, AZURITE, "{}", script.name);
        let compared = run::compare(&script, AZURITE, &script.recording, &right).await;
        assert_eq!(compared.problems, Vec::<String>::new(), "{}", script.name);
        seen.scripts.push((script, compared));
    }
    let triage = seen.triage(&ledger, &BTreeSet::from([Lane::Traces]));
    assert!(triage.is_clean(), "{}", triage.report("2026-11-21"));
}

#[test]
fn document_matches_the_ledger() {
    let ledger = load(&root().join("fixtures/differences.toml")).unwrap();
    let text = crate::replay::corpus::read(&root().join("DIFFERENCES.md")).unwrap();
    let is_current = document::renewed(&text, &ledger).is_some_and(|renewed| renewed == text);
    assert!(is_current, "run: harness diff --document DIFFERENCES.md");
}

fn finding() -> Finding {
    Finding {
        lane: Lane::Traces,
        script: "blob/leases".to_owned(),
        exchange: 3,
        operation: "GET blob".to_owned(),
        request: "GET https://account.blob.core.windows.net/c/b".to_owned(),
        statuses: (200, 200),
        aspect: Aspect::HeaderNames,
        at: "x-ms-a".to_owned(),
        smalt: "(absent)".to_owned(),
        other: "1\"2".to_owned(),
    }
}

/// The entry that is printed for a difference explains it once verdict and evidence are filled in,
/// and is stale when the difference is gone.
#[test]
fn printed_entries_explain_and_grow_stale() {
    let whole = BTreeSet::from([Lane::Traces]);
    let unlisted = judge(&Ledger::default(), &[finding(), finding()], &whole);
    assert!(!unlisted.is_clean());
    let report = unlisted.report("2026-11-21");
    assert!(report.contains("unexplained, 2 times"), "{report}");
    let entry = report.split_once("[[difference]]").unwrap().1;
    let entry = entry
        .replace("verdict = \"\"", "verdict = \"azurite-wrong\"")
        .replace(
            "evidence = \"\"",
            "evidence = \"Get Blob: no such header in its table\"",
        );
    let ledger = Ledger::parse("f", &format!("[[difference]]{entry}")).unwrap();
    assert!(judge(&ledger, &[finding()], &whole).is_clean());
    let stale = judge(&ledger, &[], &whole);
    assert_eq!(stale.stale, ["get-blob-x-ms-a"]);
    assert!(stale.report("").contains("remove it"));
    let in_part = judge(&ledger, &[], &BTreeSet::new());
    assert!(in_part.is_clean());
    for other in [
        Finding {
            at: "x-ms-b".to_owned(),
            ..finding()
        },
        Finding {
            aspect: Aspect::HeaderValues,
            ..finding()
        },
        Finding {
            statuses: (404, 404),
            ..finding()
        },
        Finding {
            operation: "HEAD blob".to_owned(),
            ..finding()
        },
        Finding {
            other: "2".to_owned(),
            ..finding()
        },
    ] {
        assert_eq!(judge(&ledger, &[other], &whole).unexplained.len(), 1);
    }
}

#[test]
fn comparison_ends_when_states_diverge() {
    let status = |operation: &str, statuses| Finding {
        aspect: Aspect::Status,
        operation: operation.to_owned(),
        statuses,
        ..finding()
    };
    let (traces, histories) = (Lane::Traces, Lane::Histories);
    assert!(status("PUT blob", (201, 409)).parts_ways(traces));
    assert!(!status("PUT blob", (404, 409)).parts_ways(histories));
    assert!(!status("GET blob", (200, 404)).parts_ways(histories));
    let relation = Finding {
        aspect: Aspect::Relations,
        ..finding()
    };
    assert!(relation.parts_ways(histories) && !relation.parts_ways(traces));
    assert!(!finding().parts_ways(histories));
    let page = Finding {
        at: "x-ms-continuation-nextrowkey".to_owned(),
        ..relation
    };
    assert!(page.is_of_a_page() && !page.parts_ways(histories));
    let part = |at: &str, smalt: &str, other: &str| Finding {
        aspect: Aspect::Body,
        operation: "POST transaction".to_owned(),
        statuses: (202, 202),
        at: at.to_owned(),
        smalt: smalt.to_owned(),
        other: other.to_owned(),
        ..finding()
    };
    let (done, missing) = ("HTTP/1.1 204 No Content", "HTTP/1.1 404 Not Found");
    let line = "part 0/part 0/start line";
    assert!(part(line, done, missing).parts_ways(histories));
    assert!(!part(line, "HTTP/1.1 400 Bad Request", missing).parts_ways(histories));
    assert!(part("part 0/", "3 parts", "1 parts").parts_ways(histories));
    assert!(!part("part 0/part 0/", "JSON", "(empty)").parts_ways(histories));
}

/// In a part of a transaction, a different status hides all else, and a different code hides the
/// message.
#[test]
fn consequences_of_a_difference_are_not_reported() {
    let at = |(aspect, at): (Aspect, &str)| Difference {
        aspect,
        at: at.to_owned(),
        recorded: "a".to_owned(),
        live: "b".to_owned(),
    };
    let texts = |differences: &[(Aspect, &str)]| {
        let all: Vec<Difference> = differences.iter().copied().map(at).collect();
        let own = primary(&all).into_iter().map(|one| one.at);
        own.collect::<Vec<String>>()
    };
    let body = |at| (Aspect::Body, at);
    let line = "part 0/part 1/start line";
    let parts = [
        body(line),
        body("part 0/part 1/etag"),
        body("part 0/part 1/.odata.error.code"),
        body("part 0/part 0/etag"),
    ];
    assert_eq!(texts(&parts), [line, "part 0/part 0/etag"]);
    let coded = [
        (Aspect::Code, "code"),
        body(".odata.error.code"),
        body(".odata.error.message.value"),
        body(".value"),
    ];
    assert_eq!(texts(&coded), ["code", ".value"]);
    let page = [
        body(".odata.metadata"),
        body(".value[0]"),
        body(".value[0].RowKey"),
        (Aspect::Relations, ".value[0].odata.etag"),
    ];
    assert_eq!(texts(&page), [".odata.metadata", ".value"]);
}
