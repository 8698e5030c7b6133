//! The emulator's answers against the facts, and tests of the judge.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::judge::{self, Verdict};
use super::sources::{self, Observer};
use super::table::{self, Facts};
use crate::replay::corpus;
use crate::replay::recording::Recording;
use crate::wire::Answer;

/// Facts that no answer of the emulator meets yet.
const UNMET: &str = "facts-unmet.tsv";

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

fn read(name: &str) -> String {
    corpus::read(&fixtures().join(name)).unwrap()
}

fn facts() -> Facts {
    table::read(&read("facts.tsv")).unwrap()
}

/// Every answer of the emulator has what the real service's answers always have, nothing that they
/// never have, and the same forms. Every fact is met, but for those in a list.
///
/// `--nocapture` prints the facts that are not met; `SMALT_WRITE_FACTS=1` writes their list.
#[tokio::test]
async fn the_emulator_answers_as_the_facts_say() {
    let facts = Arc::new(facts());
    let verdict = Arc::new(Mutex::new(Verdict::default()));
    let observer: Observer = {
        let (facts, verdict) = (Arc::clone(&facts), Arc::clone(&verdict));
        Arc::new(move |request, answer| {
            let mut verdict = verdict.lock().unwrap_or_else(PoisonError::into_inner);
            verdict.judge(&facts, request, answer);
        })
    };
    sources::observe(&fixtures(), &observer).await.unwrap();
    let verdict = verdict.lock().unwrap_or_else(PoisonError::into_inner);
    let known = judge::known(&read("facts-known.tsv")).unwrap();
    let report = judge::report(&verdict, &known);
    assert!(report.is_empty(), "{}", report.join("\n"));
    let (met, all, answers) = (verdict.met.len(), facts.len(), verdict.answers);
    println!("{answers} answers of the emulator met {met} of {all} facts");
    let unmet = verdict.unmet(&facts);
    let lines: String = unmet.iter().map(|key| format!("{key}\n")).collect();
    print!("{lines}");
    if std::env::var_os("SMALT_WRITE_FACTS").is_some() {
        let head = "# Facts that no answer of the emulator in a test meets: service, operation, \
                    status, code.\n";
        corpus::write(&fixtures().join(UNMET), &format!("{head}{lines}")).unwrap();
    }
    let listed = read(UNMET);
    let listed = listed.lines().filter(|line| !line.starts_with('#'));
    let listed: BTreeSet<String> = listed.map(str::to_owned).collect();
    let lost: Vec<_> = unmet.difference(&listed).collect();
    assert!(lost.is_empty(), "met before and not any more: {lost:#?}");
    let gained: Vec<_> = listed.difference(&unmet).collect();
    assert!(gained.is_empty(), "met, remove from {UNMET}: {gained:#?}");
}

fn trace(name: &str) -> Recording {
    corpus::load(&fixtures().join("traces"), &format!("{name}.ndjson")).unwrap()
}

/// Returns how the answer to the first such operation, changed, contradicts the facts.
fn bent(name: &str, operation: &str, bend: impl Fn(&mut Answer)) -> Vec<String> {
    let recording = trace(name);
    let mut all = recording.interactions.into_iter();
    let mut one = all
        .find(|one| one.operation == operation && one.response.status < 300)
        .unwrap();
    bend(&mut one.response);
    let mut verdict = Verdict::default();
    verdict.judge(&facts(), &one.request, &one.response);
    assert_eq!(verdict.met.len(), 1, "{operation}");
    let found = verdict.disagreements.into_keys();
    found
        .map(|found| format!("{} {}: {}", found.at, found.name, found.what))
        .collect()
}

fn text(answer: &mut Answer, from: &str, to: &str) {
    let body = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(body.contains(from), "{body}");
    answer.body = body.replace(from, to).into();
}

/// A bent answer contradicts the facts, and the answer as it was does not.
#[test]
fn bent_answers_contradict_the_facts() {
    let (put, list) = ("PUT blob BlockBlob", "GET container comp=list");
    let upload = |bend: fn(&mut Answer)| bent("blob/block_blob", put, bend);
    assert_eq!(upload(|_| {}), [""; 0]);
    let lacks = upload(|answer| answer.headers.remove("etag"));
    assert_eq!(lacks, ["answer etag: missing"]);
    let invented = upload(|answer| answer.headers.push("x-ms-invented", "1"));
    assert_eq!(invented, ["answer x-ms-invented: unexpected"]);
    let weak = upload(|answer| answer.headers.set("etag", "W/\"0x1\""));
    assert_eq!(weak, ["answer etag: text"]);
    let local = upload(|answer| answer.headers.set("last-modified", "2026-11-21T11:00:00Z"));
    assert_eq!(local, ["answer last-modified: iso8601.0"]);
    let listing = |bend: fn(&mut Answer)| bent("blob/folders", list, bend);
    assert_eq!(listing(|_| {}), [""; 0]);
    let renamed = listing(|answer| text(answer, "Content-Type>", "ContentType>"));
    let properties = "EnumerationResults/Blobs/Blob/Properties";
    let expected = [
        format!("{properties} Content-Type: missing"),
        format!("{properties} ContentType: unexpected"),
    ];
    assert_eq!(renamed, expected);
    let unmarked = listing(|answer| text(answer, "\u{feff}", ""));
    assert_eq!(unmarked, ["answer body: xml"]);
    let entities = bent("table/queries", "GET entities", |answer| {
        text(answer, "\"value\"", "\"values\"");
    });
    assert_eq!(entities, ["json *: unexpected", "json value: missing"]);
}

/// The known disagreements cover what they name, and one that nothing shows is reported.
#[test]
fn known_disagreements_grow_stale() {
    let mut one = trace("blob/block_blob").interactions.swap_remove(0);
    one.response.headers.push("x-ms-invented", "1");
    let mut verdict = Verdict::default();
    verdict.judge(&facts(), &one.request, &one.response);
    let reason = "Invented for this test.";
    let line = |name: &str| format!("blob\t*\t*\t*\tanswer {name}\tunexpected\t{reason}");
    let report = |list: &str| judge::report(&verdict, &judge::known(list).unwrap());
    assert_eq!(report("").len(), 1);
    assert_eq!(report(&line("x-ms-inv*")), [""; 0]);
    let both = format!("{}\n{}", line("x-ms-invented"), line("etag"));
    let stale = format!("nothing shows it, remove it: {}", line("etag"));
    assert_eq!(report(&both), [stale]);
    assert!(judge::known(&line("etag").replace(reason, "short")).is_err());
}

/// A file of facts is read as it was written, has nothing of the contents of a recording, and is
/// rejected with a value in it.
#[test]
fn facts_hold_forms_and_no_values() {
    let mut facts = Facts::new();
    for name in ["blob/folders", "blob/block_blob", "table/entities"] {
        table::add(&mut facts, &trace(name));
    }
    table::settle(&mut facts);
    let text = table::write(&facts);
    assert_eq!(table::write(&table::read(&text).unwrap()), text);
    for value in [
        "box",
        "north",
        "a/b.txt",
        "naïve",
        "count",
        "2026-11-21",
        "text/plain",
    ] {
        assert!(!text.contains(value), "{value}");
    }
    let etag = "etag!etag ";
    assert!(text.contains(etag));
    let edited = text.replace(etag, "etag!0x8DF ");
    assert!(table::read(&edited).unwrap_err().contains("invalid fact"));
}
