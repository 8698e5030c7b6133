//! The check of the example, checked.

use crate::app::audit::{self, Faults, Found};
use crate::{Outcome, SEVERAL, prepared};

/// Something wrong, in what was right, with a channel that stays.
type Planted = fn(&mut Found, &str);

/// The check itself: each thing that can be wrong is noticed, and told in one line.
#[tokio::test(start_paused = true)]
async fn the_check_notices() -> Outcome {
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
        ("requests that are not done: 1", |found, _| {
            found.waiting = 1;
        }),
        ("blogs without a valid channel: 1", |found, _| {
            let blogs = found.blogs.entry("gone".to_owned()).or_default();
            blogs.insert("2026".to_owned());
        }),
        ("channels that were to stay", |found, stays| {
            found.channels.remove(stays);
        }),
        ("channels that were to stay", |found, stays| {
            found.channels.insert(stays.to_owned(), false);
        }),
        ("blogs without a valid channel: 65", |found, stays| {
            found.channels.insert(stays.to_owned(), false);
        }),
        ("blogs lost from channels that stay: 1", |found, stays| {
            found.blogs.get_mut(stays).unwrap().pop_first();
        }),
        ("blogs lost from channels that stay", |found, _| {
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
