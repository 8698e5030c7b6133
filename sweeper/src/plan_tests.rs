//! Tests of a plan's totals and output.

use super::*;
use crate::destination::Destination;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobKind, BlobProperties, LeaseState, Metadata, Tag};

fn item(name: &str, length: u64) -> BlobItem {
    BlobItem {
        name: name.to_owned(),
        properties: BlobProperties {
            etag: Tag(String::new()),
            last_modified: Timestamp::UNIX_EPOCH,
            length,
            content_md5: None,
            content_type: None,
            metadata: Metadata::new(),
            lease: LeaseState::Unlocked,
            kind: BlobKind::Block,
            copy: None,
            access_tier: None,
            tag_count: 0,
            tags: None,
        },
    }
}

fn seen(decision: &Decision, keeps: Option<Outcome>) -> Foreseen<'_> {
    Foreseen {
        decision,
        keeps,
        detail: None,
    }
}

fn sample() -> Plan {
    let mut plan = Plan::default();
    let due = Timestamp::UNIX_EPOCH;
    let destination = Destination {
        container: "dbc".to_owned(),
        name: "a".to_owned(),
    };
    plan.page("events");
    plan.blob(
        "events",
        "events",
        &item("=a,\"b", 2_048),
        seen(&Decision::Delete { due }, None),
    );
    plan.blob(
        "events",
        "events",
        &item("b", 1),
        seen(&Decision::Move { due, destination }, None),
    );
    plan.blob(
        "events",
        "events",
        &item("c", 1),
        seen(&Decision::Keep(Outcome::NotDue), None),
    );
    plan.blob(
        "events",
        "events",
        &item("d", 1),
        seen(&Decision::Keep(Outcome::InvalidTtl), None),
    );
    plan.finish(Prices::default());
    plan
}

#[test]
fn totals_and_cost_add_up() {
    let plan = sample();
    assert_eq!(
        (plan.total.seen, plan.total.delete, plan.total.r#move),
        (4, 1, 1)
    );
    assert_eq!((plan.total.attention, plan.total.delete_bytes), (1, 2_048));
    assert_eq!(plan.total.transactions, 7);
    assert!((plan.cost.cycle - 0.000_007).abs() < 1e-12);
    assert!(plan.table().contains("2.0 KiB"), "{}", plan.table());
}

/// A blob that a deep check expects to stay is listed with its destination. Its move is still
/// counted, because a sweep would begin it.
#[test]
fn blobs_expected_to_stay_are_not_counted_as_removed() {
    let mut plan = Plan {
        deep: true,
        looks: 3,
        ..Plan::default()
    };
    let due = Timestamp::UNIX_EPOCH;
    let destination = Destination {
        container: "dbc".to_owned(),
        name: "a".to_owned(),
    };
    plan.page("events");
    let (goes, moves) = (
        Decision::Delete { due },
        Decision::Move { due, destination },
    );
    for (decision, keeps) in [
        (&goes, Outcome::SnapshotsPresent),
        (&moves, Outcome::Collision),
    ] {
        plan.blob(
            "events",
            "events",
            &item("b", 10),
            seen(decision, Some(keeps)),
        );
    }
    plan.finish(Prices::default());
    let total = plan.total;
    assert_eq!(
        [total.seen, total.delete, total.r#move, total.attention],
        [2, 0, 0, 2]
    );
    assert_eq!(total.transactions, CALLS_PER_PAGE + CALLS_PER_MOVE);
    assert_eq!(plan.containers["events"].kept[&Outcome::Collision], 1);
    let csv = plan.csv();
    let last = csv.lines().last();
    assert_eq!(
        last,
        Some("collision,events,b,10,1970-01-01T00:00:00Z,dbc/a")
    );
    let table = plan.table();
    let look = "3 more for the deep checks of this plan: 0.0000\n";
    assert!(table.ends_with(look), "{table}");
}

#[test]
fn csv_is_quoted_and_formulas_are_escaped() {
    let csv = sample().csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(
        lines[1],
        "delete,events,\"'=a,\"\"b\",2048,1970-01-01T00:00:00Z,"
    );
    assert_eq!(lines[2], "move,events,b,1,1970-01-01T00:00:00Z,dbc/a");
    assert_eq!(lines[3], "invalid_ttl,events,d,1,,");
}

/// Every kind of decision twice, with distinct byte counts that show what was added where.
fn two_containers() -> Plan {
    let mut plan = Plan::default();
    let due = Timestamp::UNIX_EPOCH;
    let destination = Destination {
        container: "dbc".to_owned(),
        name: "a".to_owned(),
    };
    for (number, container) in (1..).zip(["events", "logs"]) {
        plan.page(container);
        plan.page(container);
        let decisions = [
            (1, Decision::Delete { due }),
            (
                100,
                Decision::Move {
                    due,
                    destination: destination.clone(),
                },
            ),
            (10_000, Decision::Keep(Outcome::NotDue)),
            (1_000_000, Decision::Keep(Outcome::InvalidTtl)),
        ];
        for (bytes, decision) in decisions {
            for _ in 0..2 {
                let item = item("b", bytes * number);
                plan.blob(container, container, &item, seen(&decision, None));
            }
        }
    }
    plan
}

#[test]
fn every_total_is_the_sum_of_its_own() {
    let mut plan = two_containers();
    plan.finish(Prices {
        per_10k_transactions: 10_000.0,
        per_gib_month: 1_073_741_824.0,
    });
    let events = Totals {
        seen: 8,
        seen_bytes: 2_020_202,
        delete: 2,
        delete_bytes: 2,
        r#move: 2,
        move_bytes: 200,
        attention: 2,
        pages: 2,
        transactions: 14,
    };
    assert_eq!(plan.containers["events"].totals, events);
    let total = Totals {
        seen: 16,
        seen_bytes: 6_060_606,
        delete: 4,
        delete_bytes: 6,
        r#move: 4,
        move_bytes: 600,
        attention: 4,
        pages: 4,
        transactions: 28,
    };
    assert_eq!(plan.total, total);
    assert_eq!(plan.containers["logs"].kept[&Outcome::NotDue], 2);
    assert_eq!((plan.cost.cycle, plan.cost.saved_per_month), (28.0, 6.0));
}

/// Columns align with their headers, and freed bytes are those of deletes and moves.
#[test]
fn the_table_is_aligned_and_sums_up() {
    let mut plan = two_containers();
    plan.finish(Prices::default());
    let expected = "\
container  pages  blobs  delete  move  attention  freed
events         2      8       2     2          2  202 B
logs           2      8       2     2          2  404 B
total          4     16       4     4          4  606 B
about 28 charged transactions, 0.0000 per cycle at 0.01 per 10,000 (a setting)
";
    assert_eq!(plan.table(), expected);
}

#[test]
fn sizes_use_the_largest_unit() {
    for (count, expected) in [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1.0 KiB"),
        (1_536, "1.5 KiB"),
        (1 << 20, "1.0 MiB"),
        (1 << 50, "1.0 PiB"),
        // PiB is the largest unit.
        (u64::MAX, "16384.0 PiB"),
    ] {
        assert_eq!(bytes(count), expected, "{count}");
    }
}

#[test]
fn rows_are_cut_only_when_there_are_too_many() {
    for (most, left, truncated) in [
        (13, 12, false),
        (12, 12, false),
        (11, 11, true),
        (0, 0, true),
    ] {
        let mut plan = two_containers();
        plan.truncate(most);
        assert_eq!(
            (plan.rows.len(), plan.truncated),
            (left, truncated),
            "{most}"
        );
    }
}
