//! Compares runs with a naive model that has one entry per slot.

use proptest::prelude::*;

use super::*;
use crate::store::PayloadId;

const UNIT: u64 = 512;

type Model = Vec<Option<Held>>;

fn data(payload: u64) -> Held {
    Held::Data {
        payload: PayloadId(payload),
        offset: 0,
    }
}

fn model() -> Model {
    vec![None; usize::from(SLOTS)]
}

fn overwrite(model: &mut Model, slots: Range<u16>, held: Option<Held>) {
    for slot in slots.clone() {
        let bytes = u64::from(slot - slots.start) * UNIT;
        model[usize::from(slot)] = held.map(|held| advanced(held, bytes));
    }
}

/// Expands runs to slots; fails if they overlap or are out of order.
fn flat(runs: &[Run]) -> Model {
    let mut flat = model();
    let mut end = 0;
    for run in runs {
        assert!(run.first >= end && run.first < run.end, "{runs:?}");
        overwrite(&mut flat, run.first..run.end, Some(run.held));
        end = run.end;
    }
    flat
}

fn slots() -> impl Strategy<Value = Range<u16>> {
    (0..SLOTS, 1..=40_u16).prop_map(|(first, count)| first..SLOTS.min(first + count))
}

fn steps() -> impl Strategy<Value = Vec<(Range<u16>, u8)>> {
    proptest::collection::vec((slots(), 0..3_u8), 0..40)
}

/// Applies overwrites, clears and cuts to runs and model, and checks every removed piece.
fn run(steps: &[(Range<u16>, u8)], from: u64) -> (Vec<Run>, Model) {
    let (mut runs, mut model) = (Vec::new(), model());
    for (number, (slots, what)) in (from..).zip(steps) {
        let before = runs.len();
        let pieces = cut(&mut runs, slots.clone(), UNIT);
        let rests: usize = pieces.iter().map(|piece| usize::from(piece.rests)).sum();
        let touched = pieces.len();
        assert_eq!(runs.len(), before - touched + rests);
        for piece in pieces {
            assert_eq!(model[usize::from(piece.slots.start)], Some(piece.held));
        }
        let held = match what {
            0 => Some(data(number)),
            1 => Some(Held::Cleared(number)),
            _ => None,
        };
        overwrite(&mut model, slots.clone(), held);
        if let Some(held) = held {
            let (first, end) = (slots.start, slots.end);
            insert(&mut runs, Run { first, end, held });
        }
    }
    (runs, model)
}

proptest! {
    #[test]
    fn runs_agree_with_a_slot_by_slot_model(steps in steps(), wanted in slots()) {
        let (runs, model) = run(&steps, 1);
        prop_assert_eq!(flat(&runs), &model[..]);
        let parts: Vec<Run> = within(&runs, wanted.clone(), UNIT).collect();
        let mut expected = model.clone();
        overwrite(&mut expected, 0..wanted.start, None);
        overwrite(&mut expected, wanted.end..SLOTS, None);
        prop_assert_eq!(flat(&parts), expected);
    }

    #[test]
    fn differences_are_the_slots_that_differ(
        shared in steps(),
        old in steps(),
        new in steps(),
        wanted in slots(),
    ) {
        let (old_runs, old_model) = run(&[shared.clone(), old].concat(), 1);
        let (new_runs, new_model) = run(&[shared, new].concat(), 1);
        let found = compare(&old_runs, &new_runs, wanted.clone(), UNIT);
        let mut marked = vec![false; usize::from(SLOTS)];
        for difference in found {
            for slot in difference.slots.clone() {
                let slot_bytes = u64::from(slot - difference.slots.start) * UNIT;
                let at = usize::from(slot);
                prop_assert!(!marked[at]);
                marked[at] = true;
                let here = |held: Option<Held>| held.map(|held| advanced(held, slot_bytes));
                prop_assert_eq!(here(difference.old), old_model[at]);
                prop_assert_eq!(here(difference.new), new_model[at]);
            }
        }
        for slot in 0..SLOTS {
            let at = usize::from(slot);
            let differs = wanted.contains(&slot) && old_model[at] != new_model[at];
            prop_assert_eq!(marked[at], differs, "slot {}", slot);
        }
    }
}

#[test]
fn adjacent_ranges_are_merged() {
    let mut ranges = Ranges::new(3);
    for (range, kind) in [
        (0..512, Kind::Page),
        (512..1024, Kind::Page),
        (1024..1536, Kind::Clear),
        (2048..2560, Kind::Clear),
    ] {
        assert!(ranges.push(range, kind).is_continue());
    }
    assert_eq!(
        ranges.ranges,
        [
            (0..1024, Kind::Page),
            (1024..1536, Kind::Clear),
            (2048..2560, Kind::Clear),
        ]
    );
    // Extending the last range needs no room; a new range starts the next page.
    assert!(ranges.push(2560..3072, Kind::Clear).is_continue());
    assert!(ranges.push(3072..3584, Kind::Page).is_break());
    assert_eq!(ranges.next, Some(3072));
    assert_eq!(ranges.ranges.len(), 3);
}

#[test]
fn levels_reach_from_a_page_to_the_largest_blob() {
    assert_eq!(unit(0), 512);
    assert_eq!(unit(1), 256 * 1024);
    assert_eq!(unit(2), 128 * 1024 * 1024);
    assert_eq!(unit(TOP), 64 * 1024 * 1024 * 1024);
}

/// A payload advances its offset; clearings and nodes stay the same.
#[test]
fn advancing_moves_the_payload_offset() {
    let payload = PayloadId(7);
    let at = |offset| Held::Data { payload, offset };
    for (held, bytes, expected) in [
        (at(0), 0, at(0)),
        (at(0), 512, at(512)),
        (at(1024), 512, at(1536)),
        (Held::Cleared(3), 512, Held::Cleared(3)),
        (Held::Node(3), 512, Held::Node(3)),
    ] {
        assert_eq!(advanced(held, bytes), expected, "{held:?} and {bytes}");
    }
}
