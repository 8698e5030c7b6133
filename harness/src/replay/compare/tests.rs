//! Tests of the comparer: two handwritten answers and the expected differences.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::super::bindings::Bindings;
use super::super::hosts::{Addressing, Hosts};
use super::super::rules::RULES;
use super::super::samples;
use super::Aspect::{Code, HeaderNames, HeaderValues, Status};
use super::{Aspect, Comparer, Difference};
use crate::wire::Answer;

const URL: &str = "https://account.blob.core.windows.net/c/b";
const XML: (&str, &str) = ("content-type", "application/xml");

/// One account, which every trace of smalt's own format has, at a target of either style.
struct Pair {
    hosts: Hosts,
    bindings: Bindings,
}

impl Pair {
    fn new(addressing: Addressing) -> Pair {
        let lines = [("PUT", URL.to_owned(), 201, Vec::new())];
        let recording = samples::blobs(&lines);
        Pair {
            hosts: Hosts::of(&recording, addressing),
            bindings: Bindings::default(),
        }
    }

    fn compare(&mut self, method: &str, recorded: &Answer, live: &Answer) -> Vec<Difference> {
        let mut comparer = Comparer {
            hosts: &self.hosts,
            bindings: &mut self.bindings,
            rule_uses: &mut vec![0; RULES.len()],
            account: "account",
            dropped: &BTreeSet::new(),
            reserialised: false,
            timeline: None,
            superset: None,
        };
        comparer.compare(method, recorded, live)
    }

    /// Returns aspects and places of the differences.
    fn seen(&mut self, recorded: &Answer, live: &Answer) -> Vec<(Aspect, String)> {
        let found = self.compare("GET", recorded, live).into_iter();
        found.map(|one| (one.aspect, one.at)).collect()
    }
}

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    Answer {
        status,
        headers: headers.iter().copied().collect(),
        body: Bytes::from(body.to_owned()),
    }
}

fn path_style() -> Addressing {
    Addressing::Path([0, 1, 2].map(|port| format!("127.0.0.1:1000{port}")))
}

/// An address of the account must be the one that the target writes; any other account, service,
/// host or scheme is a difference, in headers, attributes and elements.
#[test]
fn addresses_name_the_right_account() {
    for (addressing, right, wrong) in [
        (
            Addressing::Host,
            "https://account.blob.core.windows.net/c/b",
            [
                "https://other.blob.core.windows.net/c/b",
                "https://account.queue.core.windows.net/c/b",
                "https://account.blob.core.example.net/c/b",
                "http://account.blob.core.windows.net/c/b",
                "https://account.blob.core.windows.net/c/B",
            ],
        ),
        (
            path_style(),
            "http://127.0.0.1:10000/account/c/b",
            [
                "http://127.0.0.1:10000/other/c/b",
                "http://127.0.0.1:10001/account/c/b",
                "http://127.0.0.1:10000/c/b",
                "https://127.0.0.1:10000/account/c/b",
                "https://account.blob.core.windows.net/c/b",
            ],
        ),
    ] {
        let mut pair = Pair::new(addressing);
        let header = |url: &str| answer(200, &[("x-ms-copy-source", url)], "");
        let element = |url: &str| {
            let text = format!("<A ServiceEndpoint=\"{url}\"><CopySource>{url}</CopySource></A>");
            answer(200, &[XML], &text)
        };
        assert_eq!(pair.seen(&header(URL), &header(right)), []);
        assert_eq!(pair.seen(&element(URL), &element(right)), []);
        for url in wrong {
            let in_header = (Aspect::HeaderValues, "x-ms-copy-source".to_owned());
            assert_eq!(pair.seen(&header(URL), &header(url)), [in_header], "{url}");
            let places = ["/A@ServiceEndpoint", "/A/CopySource"];
            let in_body = places.map(|at| (Aspect::Body, at.to_owned()));
            assert_eq!(pair.seen(&element(URL), &element(url)), in_body, "{url}");
        }
    }
}

/// Differences in status, code, and names and values of headers are each found and named.
#[test]
fn heads_are_compared_exactly() {
    let (code, a) = (("x-ms-error-code", "BlobNotFound"), ("x-ms-a", "1"));
    let recorded = answer(404, &[code, a, XML], "");
    let mut pair = Pair::new(Addressing::Host);
    assert_eq!(pair.seen(&recorded, &recorded.clone()), []);
    let (b, a_2) = (("x-ms-b", ""), ("x-ms-a", "2"));
    let other_code = ("x-ms-error-code", "ContainerNotFound");
    for (status, headers, expected) in [
        (409, vec![code, a, XML], vec![(Status, "status")]),
        (404, vec![code, XML], vec![(HeaderNames, "x-ms-a")]),
        (404, vec![code, a, XML, b], vec![(HeaderNames, "x-ms-b")]),
        (404, vec![code, a_2, XML], vec![(HeaderValues, "x-ms-a")]),
        (
            404,
            vec![other_code, a, XML],
            vec![(Code, "code"), (HeaderValues, "x-ms-error-code")],
        ),
        (
            404,
            vec![code, a, XML, ("content-length", "1")],
            vec![(HeaderValues, "content-length")],
        ),
    ] {
        let live = answer(status, &headers, "");
        let seen = pair.seen(&recorded, &live);
        let seen: Vec<_> = seen
            .iter()
            .map(|(aspect, at)| (*aspect, at.as_str()))
            .collect();
        assert_eq!(seen, expected, "{live:?}");
    }
}

/// Invented values are equal where they were equal, and different where they were different.
#[test]
fn relations_hold_both_ways() {
    let tagged = |tag: &str| answer(200, &[("etag", tag)], "");
    let mut pair = Pair::new(Addressing::Host);
    assert_eq!(pair.seen(&tagged("\"0x1\""), &tagged("\"0xA\"")), []);
    assert_eq!(pair.seen(&tagged("\"0x2\""), &tagged("\"0xB\"")), []);
    let broken = vec![(Aspect::Relations, "etag".to_owned())];
    // The recorded value changed and the live one did not; and the other way round.
    assert_eq!(pair.seen(&tagged("\"0x3\""), &tagged("\"0xA\"")), broken);
    assert_eq!(pair.seen(&tagged("\"0x1\""), &tagged("\"0xC\"")), broken);
    let unquoted = vec![(Aspect::HeaderValues, "etag".to_owned())];
    assert_eq!(pair.seen(&tagged("\"0x4\""), &tagged("0xD")), unquoted);
}

/// An element on one side only is a difference, and the elements beside it are still compared and
/// bound.
#[test]
fn elements_beside_a_missing_one_are_compared() {
    let listing = |marker: &str, more: &str, name: &str| {
        let text = format!("<R>{more}<Name>{name}</Name><NextMarker>{marker}</NextMarker></R>");
        answer(200, &[XML], &text)
    };
    let mut pair = Pair::new(Addressing::Host);
    let seen = pair.seen(&listing("m1", "", "a"), &listing("n1", "<Marker/>", "b"));
    let at = |at: &str| (Aspect::Body, at.to_owned());
    assert_eq!(seen, [at("/R"), at("/R/Name")]);
    let again = pair.seen(&listing("m1", "", "a"), &listing("n2", "", "a"));
    let relation = vec![(Aspect::Relations, "/R/NextMarker".to_owned())];
    assert_eq!(again, relation);
}

/// Bodies are documents where both sides have documents, and bytes otherwise.
#[test]
fn bodies_are_compared_by_their_kind() {
    let mut pair = Pair::new(Addressing::Host);
    let (plain, xml) = ("text/plain", "application/xml");
    for (kind, recorded, live, equal) in [
        (plain, "a b", "a b", true),
        (plain, "a b", "a  b", false),
        (xml, "<a><b>1</b></a>", "<a>\n <b>1</b></a>", true),
        (xml, "<a><b>1</b><c/></a>", "<a><c/><b>1</b></a>", false),
        (
            xml,
            "<a><b>1</b><b>2</b></a>",
            "<a><b>2</b><b>1</b></a>",
            false,
        ),
        (xml, "<a/>", "<a>", false),
    ] {
        let [recorded, live] =
            [recorded, live].map(|body| answer(200, &[("content-type", kind)], body));
        let found = pair.compare("GET", &recorded, &live);
        assert_eq!(found.is_empty(), equal, "{recorded:?} {live:?} {found:?}");
    }
}
