//! The part of a history that concerns one queue of several.

use crate::scenario::history::{Event, Happening};
use crate::scenario::listen::{Names, Seen};

/// Returns the events that concern `queue` or no queue, with their indexes in the history: all
/// events where there is only one queue.
pub(super) fn of(history: &[Event], queue: &str, names: &Names) -> (Vec<Event>, Vec<usize>) {
    let numbered = history.iter().enumerate();
    let about = numbered.filter_map(|(number, event)| {
        let mut event = event.clone();
        match &event.what {
            Happening::Exchange(exchange) => {
                let (_, other, _) = exchange.segments();
                if names.is_queue(&other) && other != queue {
                    return None;
                }
            }
            Happening::Listener(Seen::Of(other, seen)) => {
                if other != queue {
                    return None;
                }
                event.what = Happening::Listener(seen.as_ref().clone());
            }
            _ => {}
        }
        Some((event, number))
    });
    about.unzip()
}
