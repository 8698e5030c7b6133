//! Which events are due, kept in memory, so that a delivery reads only new events and those that it
//! attempts. A start reads all of them once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;

use smalt_protocol::Timestamp;

use crate::keys::{self, Generation};
use crate::records::{DeliveryRecord, Record as _};
use crate::store::{StoreResult, View};

/// The events of all subscriptions that are not delivered yet.
#[derive(Debug, Default)]
pub struct Schedule {
    /// The state that was read, as the store counts states.
    state: u64,
    lists: BTreeMap<Generation, List>,
}

/// The events of one subscription.
#[derive(Debug, Default)]
pub struct List {
    /// The last key that was read; later events have greater keys.
    read_to: Option<Vec<u8>>,
    /// Keys of events that can be attempted, in the order of their times.
    next: BTreeSet<(Timestamp, Vec<u8>)>,
    /// Times and keys of the events of each blob that keep their order; the first is in `next`.
    of_blob: BTreeMap<String, VecDeque<(Timestamp, Vec<u8>)>>,
}

impl Schedule {
    /// Forgets subscriptions that are gone, and everything if `state` is another than before.
    pub fn keep(&mut self, state: u64, subscriptions: &BTreeSet<Generation>) {
        if std::mem::replace(&mut self.state, state) != state {
            self.lists.clear();
        }
        self.lists
            .retain(|generation, _| subscriptions.contains(generation));
    }

    /// Returns the events of a subscription.
    pub fn list(&mut self, subscription: Generation) -> &mut List {
        self.lists.entry(subscription).or_default()
    }

    /// Returns when the next event is to be attempted.
    pub fn next(&self) -> Option<Timestamp> {
        let firsts = self.lists.values().filter_map(|list| list.next.first());
        firsts.map(|(due, _)| *due).min()
    }
}

impl List {
    /// Reads the events that were raised since the last call.
    ///
    /// # Errors
    /// When the store fails, or a record cannot be read.
    pub fn read(&mut self, view: &dyn View, subscription: Generation) -> StoreResult<()> {
        let from = match &self.read_to {
            Some(key) => [key, [0].as_slice()].concat(),
            None => keys::events(subscription),
        };
        events(view, subscription, &from, |key, delivery| {
            self.read_to = Some(key.to_vec());
            self.add(key.to_vec(), &delivery);
        })
    }

    /// Returns the keys of at most `most` events that are due.
    pub fn due(&self, now: Timestamp, most: usize) -> impl Iterator<Item = &Vec<u8>> {
        let due = self.next.iter().take_while(move |(due, _)| *due <= now);
        due.take(most).map(|(_, key)| key)
    }

    /// Replaces an event that was due by what is left of it.
    pub fn settle(&mut self, key: Vec<u8>, old: &DeliveryRecord, left: Option<&DeliveryRecord>) {
        self.next.remove(&(old.due, key.clone()));
        if let Some(left) = left {
            self.next.insert((left.due, key));
        }
        let is_first = left.is_some_and(|left| !waits_alone(left));
        if !waits_alone(old) && !is_first {
            self.follow(&old.event.subject);
        }
    }

    fn add(&mut self, key: Vec<u8>, delivery: &DeliveryRecord) {
        if waits_alone(delivery) {
            self.next.insert((delivery.due, key));
            return;
        }
        let of_blob = self.of_blob.entry(delivery.event.subject.clone());
        let of_blob = of_blob.or_default();
        of_blob.push_back((delivery.due, key.clone()));
        if of_blob.len() == 1 {
            self.next.insert((delivery.due, key));
        }
    }

    /// Makes the second event of a blob the first.
    fn follow(&mut self, blob: &str) {
        let Some(of_blob) = self.of_blob.get_mut(blob) else {
            return;
        };
        of_blob.pop_front();
        match of_blob.front() {
            Some(first) => drop(self.next.insert(first.clone())),
            None => drop(self.of_blob.remove(blob)),
        }
    }
}

/// Visits the events of a subscription from this key on, in their order.
fn events(
    view: &dyn View,
    subscription: Generation,
    from: &[u8],
    mut visit: impl FnMut(&[u8], DeliveryRecord),
) -> StoreResult<()> {
    let end = keys::after(keys::events(subscription));
    let mut failed = Ok(());
    view.scan(from, &end, &mut |key, value| {
        match DeliveryRecord::decode(value) {
            Ok(event) => visit(key, event),
            Err(error) => {
                failed = Err(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    failed
}

/// Returns whether an event no longer keeps later ones of its blob from being delivered.
fn waits_alone(delivery: &DeliveryRecord) -> bool {
    delivery.given_up.is_some() || delivery.is_overtaken
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::records::{EventData, EventRecord};
    use crate::rules::events::EventKind;
    use crate::store::Visit;

    /// Records in memory, and how many of them were read.
    #[derive(Default)]
    struct Counted(BTreeMap<Vec<u8>, Bytes>, Cell<usize>);

    impl View for Counted {
        fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
            Ok(self.0.get(key).cloned())
        }

        fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
            for (key, value) in self.0.range(from.to_vec()..to.to_vec()) {
                self.1.set(self.1.get() + 1);
                if visit(key, value).is_break() {
                    break;
                }
            }
            Ok(())
        }
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix_s(1_700_000_000 + seconds)
    }

    fn event(blob: &str, due_s: u64) -> DeliveryRecord {
        DeliveryRecord {
            event: EventRecord {
                id: uuid::Uuid::nil(),
                account: "devstoreaccount1".to_owned(),
                subject: blob.to_owned(),
                kind: EventKind::BlobCreated,
                at: at(0),
                data: EventData::default(),
            },
            due: at(due_s),
            attempts: 0,
            last: None,
            given_up: None,
            is_overtaken: false,
        }
    }

    fn due(list: &List, now_s: u64) -> Vec<u16> {
        let place = |key: &Vec<u8>| u16::from_be_bytes([key[key.len() - 2], key[key.len() - 1]]);
        list.due(at(now_s), usize::MAX).map(place).collect()
    }

    #[test]
    fn event_is_read_once_and_follows_the_earlier_one_of_its_blob() {
        let (mut view, mut list) = (Counted::default(), List::default());
        let key = |place| keys::event(7, at(0), place);
        let events = [event("a", 0), event("a", 0), event("b", 9), event("b", 0)];
        for (place, event) in (0..).zip(&events) {
            view.0.insert(key(place), event.encode().unwrap());
        }
        list.read(&view, 7).unwrap();
        assert_eq!((due(&list, 0), due(&list, 9)), (vec![0], vec![0, 2]));
        let again = DeliveryRecord {
            due: at(5),
            ..events[0].clone()
        };
        list.settle(key(0), &events[0], Some(&again));
        assert_eq!((due(&list, 0), due(&list, 5)), (vec![], vec![0]));
        let overtaken = DeliveryRecord {
            due: at(20),
            is_overtaken: true,
            ..again.clone()
        };
        list.settle(key(0), &again, Some(&overtaken));
        assert_eq!((due(&list, 0), due(&list, 20)), (vec![1], vec![1, 2, 0]));
        list.settle(key(2), &events[2], None);
        list.settle(key(0), &overtaken, None);
        assert_eq!(due(&list, 20), [1, 3]);
        view.0.insert(key(4), event("c", 0).encode().unwrap());
        list.read(&view, 7).unwrap();
        assert_eq!(due(&list, 20), [1, 3, 4]);
        assert_eq!(view.1.get(), 5, "every record is read once");
    }

    #[test]
    fn another_state_is_read_again() {
        let mut schedule = Schedule::default();
        let both = BTreeSet::from([1, 2]);
        schedule.keep(0, &both);
        for subscription in both.clone() {
            schedule
                .list(subscription)
                .next
                .insert((at(subscription), vec![]));
        }
        schedule.keep(0, &BTreeSet::from([2]));
        assert_eq!(schedule.next(), Some(at(2)));
        schedule.keep(1, &both);
        assert_eq!(schedule.next(), None);
    }

    proptest! {
        /// Whatever becomes of each delivery, every event comes up: those that were given up or
        /// overtaken by themselves, the others in the order of their blob.
        #[test]
        fn every_event_comes_up(
            blobs in prop::collection::vec("[ab]", 1..9),
            fates in prop::collection::vec(0..4, 30),
        ) {
            let (mut list, mut open) = (List::default(), BTreeMap::new());
            for (place, blob) in (0..).zip(&blobs) {
                let (key, one) = (keys::event(1, at(0), place), event(blob, 0));
                list.add(key.clone(), &one);
                open.insert(key, one);
            }
            let mut fates = fates.into_iter();
            while !open.is_empty() {
                let mut waiting = BTreeSet::new();
                let expected = open.iter().filter(|(_, it)| {
                    let is_ordered = it.given_up.is_none() && !it.is_overtaken;
                    !is_ordered || waiting.insert(&it.event.subject)
                });
                let expected = expected.map(|(key, it)| (it.due, key.clone()));
                prop_assert_eq!(&list.next, &expected.collect::<BTreeSet<_>>());
                let Some((_, key)) = list.next.first().cloned() else { break };
                let old = open[&key].clone();
                let mut left = DeliveryRecord { due: old.due.plus_s(10), ..old.clone() };
                match fates.next() {
                    Some(1) => {}
                    Some(2) => left.given_up = Some("reason".to_owned()),
                    Some(3) => left.is_overtaken = true,
                    _ => {
                        list.settle(key.clone(), &old, None);
                        open.remove(&key);
                        continue;
                    }
                }
                list.settle(key.clone(), &old, Some(&left));
                open.insert(key, left);
            }
        }
    }
}
