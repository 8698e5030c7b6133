//! Tests of the example's check.

use crate::channels::app::audit::{self, Faults, Found};
use crate::channels::{Outcome, SEVERAL, prepared};

/// Plants a fault in a correct state; the string is a channel that stays.
type Planted = fn(&mut Found, &str);

/// Each possible fault is detected and reported in one line.
#[tokio::test(start_paused = true)]
async fn the_check_detects_each_fault() -> Outcome {
    let (_, own) = prepared(&SEVERAL).await?;
    let at_first = audit::read(&own).await?;
    let requested = SEVERAL.requested();
    let stays = SEVERAL.channels();
    let stays = stays
        .iter()
        .find(|name| !requested.contains(*name))
        .unwrap();
    let mut good = at_first.clone();
    good.channels.retain(|name, _| !requested.contains(name));
    good.blogs.retain(|name, _| !requested.contains(name));
    assert_eq!(good.faults(&SEVERAL), Faults::default());
    assert_eq!(at_first.faults(&SEVERAL).left.len(), requested.len());
    let table: [(&str, Planted); 7] = [
        ("requests not done: 1", |found, _| {
            found.waiting = 1;
        }),
        ("blogs without a valid channel: 1", |found, _| {
            let blogs = found.blogs.entry("gone".to_owned()).or_default();
            blogs.insert("2026".to_owned());
        }),
        ("channels deleted without a request", |found, stays| {
            found.channels.remove(stays);
        }),
        ("channels deleted without a request", |found, stays| {
            found.channels.insert(stays.to_owned(), false);
        }),
        ("blogs without a valid channel: 65", |found, stays| {
            found.channels.insert(stays.to_owned(), false);
        }),
        ("blogs missing from other channels: 1", |found, stays| {
            found.blogs.get_mut(stays).unwrap().pop_first();
        }),
        ("blogs missing from other channels", |found, _| {
            found.writers.insert("w9".to_owned(), SEVERAL.written);
        }),
    ];
    for (told, plant) in table {
        let mut bad = good.clone();
        plant(&mut bad, stays);
        let line = bad.faults(&SEVERAL).to_string();
        assert!(line.contains(told), "{told}: {line:?}");
        assert!(!line.contains('\n'), "{line:?}");
    }
    Ok(())
}
