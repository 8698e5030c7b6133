//! Tests that the comparison detects every kind of difference: each row changes one detail of one
//! answer in a recorded trace, and the replay must report it there, in that aspect.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::fixtures::load;
use crate::replay::compare::Aspect;
use crate::replay::mirror::Mirror;
use crate::replay::player::{Outcome, play};
use crate::wire::Answer;

/// A change to an answer.
#[derive(Clone, Copy, Debug)]
enum Edit {
    /// Sets the status.
    SetStatus(u16),
    /// Removes a header.
    Drop(&'static str),
    /// Sets a header.
    Set(&'static str, &'static str),
    /// Sets a header to its value in the answer with this index.
    From(&'static str, usize),
    /// Replaces the first occurrence of a string in the body.
    Replace(&'static str, &'static str),
    /// Swaps the contents of the first two elements of this name.
    Swap(&'static str),
    /// Uses the body of the answer with this index.
    BodyFrom(usize),
    /// Removes the body.
    Empty,
}
use Aspect::{Body, Code, HeaderNames, HeaderValues, Relations, Status};
use Edit::{BodyFrom, Drop, Empty, From, Replace, Set, SetStatus, Swap};

const BOM: &str = "\u{feff}";
const ETAG: &str = "\"0x8D00000000000FF\"";
const LEASE: &str = "99999999-2222-3333-4444-555555555555";
const LONG_AGO: &str = "Thu, 09 May 2019 00:57:59 GMT";

/// The changes of one trace: index of the answer, change, aspect.
type Changes = &'static [(usize, Edit, Aspect)];

/// The changes by trace.
const MUTATIONS: &[(&str, Changes)] = &[
    (
        "blob/container",
        &[
            (0, SetStatus(200), Status),
            (1, SetStatus(412), Status),
            (0, Drop("etag"), HeaderNames),
            (4, Drop("x-ms-meta-b"), HeaderNames),
            (4, Drop("x-ms-request-id"), HeaderNames),
            (4, Drop("date"), HeaderNames),
            (0, Set("x-ms-extra", "1"), HeaderNames),
            (4, Set("x-ms-meta-b", "3"), HeaderValues),
            (4, Set("x-ms-lease-state", "leased"), HeaderValues),
            (0, Set("x-ms-version", "2019-02-02"), HeaderValues),
            (0, Set("date", LONG_AGO), HeaderValues),
            (0, Set("last-modified", LONG_AGO), HeaderValues),
            (0, Set("etag", "0x8D00000000000FF"), HeaderValues),
            (3, From("etag", 0), Relations),
            (4, Set("etag", ETAG), Relations),
            (1, Set("x-ms-error-code", "BlobNotFound"), Code),
            (1, Replace("already exists", "is there"), Body),
            (1, Replace("<Code>ContainerA", "<Code>BlobA"), Body),
            (7, Replace("<Name>box<", "<Name>bax<"), Body),
            (7, Replace("<b>2</b>", ""), Body),
            (7, Replace(BOM, ""), Body),
            (7, Replace("account.blob.", "account.queue."), Body),
            (7, Replace("account.blob.", "other.blob."), Body),
            (6, Empty, Body),
        ],
    ),
    (
        "blob/block_blob",
        &[
            (3, Replace("hello", "hellO"), Body),
            (3, Replace("hello", "hell"), Body),
            (4, Set("content-range", "bytes 0-2/5"), HeaderValues),
            (2, Set("content-md5", "AAAA"), HeaderValues),
            (2, Set("x-ms-content-crc64", "AAAA"), HeaderValues),
            (5, Set("content-length", "7"), HeaderValues),
            (5, Drop("x-ms-access-tier-inferred"), HeaderNames),
            (7, From("etag", 2), Relations),
            (12, Replace("red", "blue"), Body),
            (16, Swap("Name"), Body),
            (16, Swap("Etag"), Relations),
            (17, BodyFrom(16), Body),
        ],
    ),
    (
        "blob/copies",
        &[
            (3, Set("x-ms-copy-status", "pending"), HeaderValues),
            (
                4,
                Set(
                    "x-ms-copy-source",
                    "https://other.blob.core.windows.net/box/from",
                ),
                HeaderValues,
            ),
        ],
    ),
    (
        "blob/snapshots",
        &[
            (6, Replace("<Snapshot>2026", "<Snapshot>2025"), Relations),
            (3, Drop("x-ms-snapshot"), HeaderNames),
            (5, From("etag", 4), Relations),
        ],
    ),
    (
        "blob/leases",
        &[
            (6, Set("x-ms-lease-id", LEASE), Relations),
            (9, Set("x-ms-lease-time", "9"), HeaderValues),
        ],
    ),
    (
        "blob/batch",
        &[
            (5, Replace("202 Accepted", "404 Not Found"), Body),
            (5, Replace("Content-ID: 0", "Content-ID: 1"), Body),
        ],
    ),
    (
        "queue/messages",
        &[
            (5, Replace("<DequeueCount>1", "<DequeueCount>2"), Body),
            (4, Swap("MessageId"), Relations),
            (4, Swap("MessageText"), Body),
            (9, BodyFrom(10), Relations),
            (11, BodyFrom(10), Body),
            (6, Drop("x-ms-popreceipt"), HeaderNames),
            (14, Drop("x-ms-approximate-messages-count"), HeaderNames),
            (4, BodyFrom(5), Body),
            (4, Replace("<QueueMessagesList>", "<"), Body),
            (5, Replace("<MessageId>", "<MessageId>7"), Body),
        ],
    ),
    (
        "table/entities",
        &[
            (4, Replace(":7,", ":\"7\","), Body),
            (
                4,
                Replace("\"count\":7,\"none\":null", "\"none\":null,\"count\":7"),
                Body,
            ),
        ],
    ),
];

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// Swaps the contents of the first two `<element>`.
fn swapped(body: &str, element: &str) -> String {
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let mut spans = body.match_indices(&open).map(|(at, _)| {
        let from = at + open.len();
        (from, from + body[from..].find(&close).unwrap())
    });
    let (a, b) = (spans.next().unwrap(), spans.next().unwrap());
    let (one, two) = (&body[a.0..a.1], &body[b.0..b.1]);
    [&body[..a.0], two, &body[a.1..b.0], one, &body[b.1..]].concat()
}

fn edit(answers: &mut [Answer], n: usize, edit: Edit) {
    let body = match edit {
        SetStatus(status) => {
            answers[n].status = status;
            return;
        }
        Drop(name) => return answers[n].headers.remove(name),
        Set(name, value) => return answers[n].headers.set(name, value),
        From(name, other) => {
            let value = answers[other].headers.get(name).unwrap().to_owned();
            return answers[n].headers.set(name, value);
        }
        Replace(from, to) => text(&answers[n]).replacen(from, to, 1),
        Swap(element) => swapped(&text(&answers[n]), element),
        BodyFrom(other) => text(&answers[other]),
        Empty => String::new(),
    };
    if answers[n].headers.has("content-length") {
        let length = body.len().to_string();
        answers[n].headers.set("content-length", length);
    }
    answers[n].body = Bytes::from(body);
}

/// Every change is reported where it was made, in its aspect, and nothing before it.
#[tokio::test]
async fn every_mutation_is_caught() {
    let mut distinct = BTreeSet::new();
    let mut missed = Vec::new();
    let rows = MUTATIONS.iter();
    let rows = rows.flat_map(|(name, changes)| changes.iter().map(move |change| (name, change)));
    for (name, (n, change, aspect)) in rows {
        let what = format!("{name}: answer {n}: {change:?}");
        assert!(distinct.insert(what.clone()), "{what} occurs twice");
        let recorded = load(name);
        let mut changed = recorded.clone();
        let mut answers: Vec<Answer> = answers_of(&recorded);
        edit(&mut answers, *n, *change);
        assert_ne!(answers, answers_of(&recorded), "{what} changes nothing");
        for (interaction, answer) in changed.interactions.iter_mut().zip(answers) {
            interaction.response = answer;
        }
        let played = play(Arc::new(Mirror::verbatim(&changed)), &recorded).await;
        let seen = match &played.outcomes[*n] {
            Outcome::Failed(differences) => differences.iter().any(|d| d.aspect == *aspect),
            _ => false,
        };
        let earlier = played.outcomes[..*n].iter();
        let mut false_alarms = earlier.filter(|outcome| **outcome != Outcome::Passed);
        if !seen || false_alarms.next().is_some() {
            missed.push(format!("{what}: {:?}", played.outcomes));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
    assert!(distinct.len() >= 30);
}

fn answers_of(recording: &crate::replay::recording::Recording) -> Vec<Answer> {
    let answers = recording.interactions.iter();
    answers.map(|one| one.response.clone()).collect()
}
