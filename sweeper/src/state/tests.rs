//! Tests that the document round-trips, version 1 is preserved, hostile documents are rejected, and
//! the ledger keeps its invariants.

use std::time::Duration;

use proptest::prelude::*;

use super::ledger::{self, Choice, Claimant, Listed};
use super::xml::Element;
use super::*;

const V1: &str = r#"<?xml version="1.0"?>
<!-- kept by hand -->
<Containers Timestamp="5/2/2013 10:15:00 AM" count="17">
  <!-- events of the shop -->
  <Container name="myName" status="Init" prefix="a&amp;b" color="red"
    uri="https://myaccount.blob.core.windows.net/events?sr=c&amp;si=mypolicy&amp;sig=mySignature"
    token=""><Note lang="en">ask <b>Ann</b></Note></Container>
  <Container name="old" status="FirstAndlast" prefix="" uri="" token="x"/>
</Containers>"#;

fn now() -> Timestamp {
    Timestamp::parse_iso("2026-11-21T10:00:00Z").unwrap()
}

/// S16: a document of the original design loads unchanged, without loss.
#[test]
fn version_one_loads_unchanged() {
    let document = read(V1).unwrap();
    assert_eq!(document.version, 1);
    assert_eq!(document.timestamp, "5/2/2013 10:15:00 AM");
    assert_eq!(
        document.extra.attributes,
        [("count".to_owned(), "17".to_owned())]
    );
    let first = &document.containers[0];
    assert_eq!(first.container_name(), "events");
    assert_eq!(first.prefix, "a&b");
    assert!(first.uri.as_deref().unwrap().ends_with("&sig=mySignature"));
    assert_eq!(
        first.extra.attributes,
        [("color".to_owned(), "red".to_owned())]
    );
    assert!(matches!(&first.extra.nodes[0], Node::Element(e) if e.name == "Note"));
    assert_eq!(document.containers[1].status, Status::FirstAndLast);
    let written = write(&document).unwrap();
    assert_eq!(read(&written).unwrap(), document);
    assert!(written.contains("si=mypolicy&amp;sig=mySignature"));
    assert!(written.contains("events of the shop"));
    assert!(!written.contains("version=\"2\""));
}

/// DS21: version 2 rejects a secret.
#[test]
fn version_two_holds_no_secret() {
    let text = V1.replace("<Containers ", "<Containers version=\"2\" ");
    assert_eq!(read(&text), Err(StateError::Secret("myName".to_owned())));
}

#[test]
fn hostile_and_foreign_documents_are_rejected() {
    let deep = format!(
        "{}{}",
        "<Containers>".repeat(50),
        "</Containers>".repeat(50)
    );
    let many = format!(
        "<Containers>{}</Containers>",
        "<a/>".repeat(xml::ELEMENTS_MAX + 1)
    );
    for text in [
        "",
        "not xml",
        "<Containers>",
        "<Containers></Container>",
        "<Containers/><Containers/>",
        "<Blobs/>",
        "<Containers version=\"0\"/>",
        "<Containers cycle=\"many\"/>",
        "<Containers nextDue=\"tomorrow\"/>",
        "<Containers><Container status=\"Paused\"/></Containers>",
        "<Containers a=\"&unknown;\"/>",
        "<Containers>&unknown;</Containers>",
        "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><Containers z=\"&b;\"/>",
        deep.as_str(),
        many.as_str(),
    ] {
        assert!(read(text).is_err(), "{}", text.get(..60).unwrap_or(text));
    }
    assert_eq!(
        read("<Containers version=\"3\"/>"),
        Err(StateError::TooNew(3))
    );
    let large = format!("<Containers a=\"{}\"/>", "x".repeat(DOCUMENT_BYTES_MAX));
    assert_eq!(read(&large), Err(StateError::TooLarge));
}

#[test]
fn characters_outside_xml_are_errors_except_in_names() {
    let mut document = Document {
        version: 2,
        ..Document::default()
    };
    document.containers.push(Container {
        name: "c".to_owned(),
        pages: vec![Page {
            first: "a\u{1}%41;%".to_owned(),
            ..Page::default()
        }],
        ..Container::default()
    });
    let text = write(&document).unwrap();
    assert_eq!(read(&text).unwrap(), document);
    document.containers[0].token = "\u{1}".to_owned();
    assert_eq!(write(&document), Err(StateError::Unwritable('\u{1}')));
}

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 <>&\"'/=?é\u{1F600}\t\n\r%;]{0,12}"
}

fn time() -> impl Strategy<Value = Option<Timestamp>> {
    proptest::option::of((0..=Timestamp::MAX.ticks()).prop_map(Timestamp::from_ticks))
}

fn extra() -> impl Strategy<Value = Extra> {
    let value = || text().prop_map(|t| t.trim().to_owned());
    let element = ("[x-z]{1,4}", value()).prop_map(|(name, value)| {
        let mut element = Element {
            name,
            attributes: vec![("k".to_owned(), value.clone())],
            nodes: Vec::new(),
        };
        if value.chars().all(char::is_alphanumeric) && !value.is_empty() {
            element.nodes.push(Node::Text(value));
        }
        Node::Element(element)
    });
    let nodes = proptest::collection::vec(element, 0..2);
    (proptest::option::of(("q[a-f]{1,3}", value())), nodes).prop_map(|(attribute, nodes)| Extra {
        attributes: attribute.into_iter().collect(),
        nodes,
    })
}

fn page() -> impl Strategy<Value = Page> {
    let names = ("\\PC{0,10}", ".{0,10}");
    (
        text(),
        text(),
        names,
        text(),
        any::<(u64, u32, u64)>(),
        time(),
        time(),
        extra(),
    )
        .prop_map(
            |(id, start, (first, last), owner, (fence, attempt, due), claimed, deadline, extra)| {
                Page {
                    id,
                    end: start.clone(),
                    start,
                    first,
                    last,
                    owner,
                    fence,
                    claimed,
                    deadline,
                    attempt,
                    due,
                    extra,
                }
            },
        )
}

fn container() -> impl Strategy<Value = Container> {
    let words = (text(), text(), text(), text());
    let optional = (proptest::option::of(text()), proptest::option::of(text()));
    let status = (0..Status::ALL.len()).prop_map(|at| Status::ALL[at]);
    let pages = proptest::collection::vec(page(), 0..3);
    (
        words,
        optional,
        status,
        any::<(u64, u32, u64)>(),
        time(),
        pages,
        extra(),
    )
        .prop_map(
            |(words, optional, status, numbers, retry_at, pages, extra)| Container {
                name: words.0,
                status,
                prefix: words.1,
                uri: optional.0.clone(),
                credential: optional.1,
                container: None,
                token: words.2,
                order: numbers.0,
                failures: numbers.1,
                retry_at,
                last_error: optional.0,
                last_token: words.3,
                tally: Tally {
                    seen: numbers.2,
                    bytes: numbers.0,
                    ..Tally::default()
                },
                pages,
                extra,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn written_documents_read_back(
        version in 1u32..=2, numbers: (u64, u64, u64), words in (text(), text()),
        next_due in time(), spent in (time(), any::<u64>()), extra in extra(),
        containers in proptest::collection::vec(container(), 0..4),
    ) {
        let document = Document {
            version, cycle: numbers.0, fence: numbers.1, purged: numbers.2,
            writer: words.0, timestamp: words.1, next_due, containers, extra,
            spent: spent.0.map(|day| Spent { day, calls: spent.1 }),
        };
        let text = write(&document).unwrap();
        prop_assert_eq!(read(&text).unwrap(), document);
    }

    #[test]
    fn any_text_is_parsed_or_rejected(text in "(<Containers>)?[<>a-z/=\"&;! \\[\\]-]{0,60}") {
        let _ = read(&text);
    }

    /// SS7: for any interleaving of claims, crashes and completions, a cycle closes only when no
    /// page is open and no container has more to list.
    #[test]
    fn a_cycle_closes_only_when_all_is_done(
        pages in proptest::collection::vec(1u32..4, 1..4),
        steps in proptest::collection::vec(0u8..8, 1..120),
    ) {
        let mut document = Document { version: 2, ..Document::default() };
        for at in 0..pages.len() {
            document.containers.push(Container { name: format!("c{at}"), ..Container::default() });
        }
        let mut left = pages;
        let mut time = now();
        for step in steps {
            let worker = Claimant { worker: "w", now: time, deadline: time.plus_s(120) };
            ledger::stamp(&mut document, "w");
            match ledger::choose(&document, time, false) {
                Choice::List { container } => {
                    left[container] -= 1;
                    let listed = Listed {
                        end: (left[container] > 0).then(|| "m".to_owned()),
                        due: u64::from(step % 2),
                        ..Listed::default()
                    };
                    ledger::hand_out(&mut document, container, &listed, &worker);
                }
                Choice::Reclaim { container, page } => {
                    let listed = Listed { due: 1, ..Listed::default() };
                    ledger::hand_out_again(&mut document, (container, page), &listed, &worker);
                }
                Choice::Wait { until } => prop_assert!(until > time),
                Choice::Close => {
                    prop_assert!(left.iter().all(|left| *left == 0));
                    prop_assert!(document.containers.iter().all(|c| c.pages.is_empty()));
                    return Ok(());
                }
                Choice::Idle { .. } => prop_assert!(false, "a cycle is under way"),
            }
            match step {
                0..=4 => complete_one(&mut document),
                5 => time = time.plus(Duration::from_secs(121)),
                _ => {}
            }
        }
    }
}

proptest! {
    /// SS10: the guard sees what a cycle has removed and may remove, whoever did it and however
    /// its page ended, and nothing of the cycle before.
    #[test]
    fn removals_of_a_cycle_are_counted_once(
        steps in proptest::collection::vec((0_u8..4, 0_usize..3, 0_u64..5), 1..60),
    ) {
        let containers = ["a", "b", "c"].map(|name| Container {
            name: name.to_owned(),
            ..Container::default()
        });
        let mut document = Document { containers: containers.into(), ..Document::default() };
        let (mut removed, mut open) = ([0; 3], Vec::new());
        for (step, at, blobs) in steps {
            let fence = ledger::stamp(&mut document, "w");
            match step {
                0 => {
                    let listed = Listed {
                        end: Some("m".to_owned()),
                        due: blobs,
                        kept: Tally { seen: 1, skipped: 1, ..Tally::default() },
                        ..Listed::default()
                    };
                    let worker = Claimant { worker: "w", now: now(), deadline: now().plus_s(60) };
                    let page = ledger::hand_out(&mut document, at, &listed, &worker);
                    prop_assert_eq!(page.is_some(), blobs > 0);
                    open.extend(page.map(|page| (at, page.id, fence)));
                }
                1 if !open.is_empty() => {
                    let (at, id, fence) = open.remove(at % open.len());
                    let tally = Tally { seen: 9, moved: blobs, deleted: 1, ..Tally::default() };
                    prop_assert!(ledger::complete(&mut document, &id, fence, &tally));
                    removed[at] += blobs + 1;
                }
                2 if !open.is_empty() => {
                    let (at, id, fence) = &open[at % open.len()];
                    let tally = Tally { seen: 9, deleted: blobs, failed: 1, ..Tally::default() };
                    ledger::give_back(&mut document, id, *fence, &tally, now());
                    removed[*at] += blobs;
                }
                3 if blobs == 0 => {
                    let closed = ledger::close(&mut document, now(), now());
                    prop_assert_eq!(closed.purged, removed.iter().sum::<u64>());
                    removed = [0; 3];
                    open.clear();
                }
                _ => {}
            }
            let may = |at: usize| document.containers[at].pages.iter().map(|page| page.due);
            let expected: Vec<u64> = (0..3).map(|at| removed[at] + may(at).sum::<u64>()).collect();
            for at in 0..3 {
                let burden = ledger::burden(&document, at);
                prop_assert_eq!(burden.container_removed, expected[at]);
                prop_assert_eq!(burden.cycle_removed, expected.iter().sum::<u64>());
            }
        }
    }
}

fn complete_one(document: &mut Document) {
    let open = document.containers.iter().flat_map(|c| &c.pages).next();
    if let Some((id, fence)) = open.map(|page| (page.id.clone(), page.fence)) {
        assert!(ledger::complete(document, &id, fence, &Tally::default()));
        assert!(!ledger::complete(document, &id, fence, &Tally::default()));
    }
}

/// DS12: a failing container delays no other, and the cycle closes without it.
#[test]
fn failing_container_is_skipped() {
    let mut document = Document {
        version: 2,
        ..Document::default()
    };
    for name in ["broken", "fine"] {
        document.containers.push(Container {
            name: name.to_owned(),
            ..Container::default()
        });
    }
    assert_eq!(
        ledger::choose(&document, now(), false),
        Choice::List { container: 0 }
    );
    ledger::fail(
        &mut document.containers[0],
        "Denied",
        true,
        now().plus_s(60),
    );
    assert_eq!(
        ledger::choose(&document, now(), false),
        Choice::List { container: 1 }
    );
    let worker = Claimant {
        worker: "w",
        now: now(),
        deadline: now().plus_s(120),
    };
    ledger::hand_out(&mut document, 1, &Listed::default(), &worker);
    assert_eq!(ledger::choose(&document, now(), false), Choice::Close);
    let closed = ledger::close(&mut document, now(), now().plus_s(600));
    assert_eq!(closed.parked, [("broken".to_owned(), "Denied".to_owned())]);
    assert_eq!(
        ledger::choose(&document, now(), false),
        Choice::Idle {
            until: now().plus_s(600)
        }
    );
    assert_eq!(
        ledger::choose(&document, now().plus_s(600), false),
        Choice::List { container: 0 }
    );
}

/// SS7: a worker whose page was reclaimed by another cannot complete it.
#[test]
fn only_the_present_claim_completes_a_page() {
    let mut document = Document {
        version: 2,
        ..Document::default()
    };
    document.containers.push(Container::default());
    let claim = |worker, now: Timestamp| Claimant {
        worker,
        now,
        deadline: now.plus_s(120),
    };
    let listed = Listed {
        due: 1,
        ..Listed::default()
    };
    ledger::stamp(&mut document, "one");
    let first = ledger::hand_out(&mut document, 0, &listed, &claim("one", now())).unwrap();
    ledger::stamp(&mut document, "two");
    let later = claim("two", now().plus_s(121));
    let second = ledger::hand_out_again(&mut document, (0, 0), &listed, &later).unwrap();
    assert_eq!((first.id.as_str(), second.attempt), (second.id.as_str(), 2));
    let tally = Tally::default();
    assert!(!ledger::complete(
        &mut document,
        &first.id,
        first.fence,
        &tally
    ));
    assert!(!ledger::extend(
        &mut document,
        &first.id,
        first.fence,
        now(),
        Duration::ZERO
    ));
    assert_eq!(document.containers[0].pages.len(), 1);
    assert!(ledger::complete(
        &mut document,
        &second.id,
        second.fence,
        &tally
    ));
}
