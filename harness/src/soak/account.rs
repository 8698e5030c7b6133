//! The account of a queue's history: what was put, got and deleted, and what must not have
//! happened.
//!
//! Each message is checked by itself. Its dequeue counts give the order of its gets, so that no
//! order has to be searched: only sorting them is not linear. Overlapping calls may have taken
//! effect in either order, and the effect of a lost call is unknown: only what none of these doubts
//! explains is a finding.

use std::collections::{BTreeMap, HashMap};

use super::events::{DRAIN, Event, Given, Outcome, What};

/// Most findings that are kept; the others are only counted.
const FINDINGS_MAX: usize = 20;

/// A kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrong {
    /// A message is gone although nobody deleted it.
    Lost,
    /// A message was delivered while it was invisible.
    WhileInvisible,
    /// A message was delivered that nobody put, or with another's text, or with a wrong dequeue
    /// count.
    Unexpected,
    /// A message was delivered or updated after its delete.
    Resurrected,
    /// A pop receipt worked after the message had been delivered to another client.
    StaleReceipt,
    /// One receipt worked twice.
    ReceiptTwice,
    /// The only pop receipt that can work was rejected.
    RefusedWrongly,
}

/// Counts of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Number of messages whose put was answered.
    pub put: u64,
    /// Number of puts without an answer.
    pub put_lost: u64,
    /// Number of deliveries.
    pub got: u64,
    /// Number of successful updates.
    pub updated: u64,
    /// Number of deleted messages.
    pub deleted: u64,
    /// Number of uses of pop receipts that were rejected.
    pub refused: u64,
    /// Number of messages that were left at the end.
    pub left: u64,
    /// Number of errors of each kind.
    pub wrong: BTreeMap<Wrong, u64>,
    /// Descriptions of the first errors.
    pub findings: Vec<String>,
}

/// A put (dequeue count 0) or a delivery of a message.
struct Grant<'a> {
    given: &'a Given,
    event: &'a Event,
}

/// A use of a pop receipt.
struct Use<'a> {
    receipt: &'a str,
    outcome: &'a Outcome,
    event: &'a Event,
    visible_s: Option<u64>,
}

/// How long a grant keeps the message invisible, and from which tick on that is certain.
struct Window {
    visible_s: u64,
    since: u64,
    is_certain: bool,
}

impl Window {
    /// Whether nobody can get the message in this call.
    fn forbids(&self, event: &Event) -> bool {
        let is_after = event.called > self.since;
        self.is_certain && is_after && event.at_ms < self.visible_s * 1_000
    }
}

#[derive(Default)]
struct Message<'a> {
    grants: Vec<Grant<'a>>,
    uses: Vec<Use<'a>>,
}

/// Facts about all messages.
struct Facts<'a> {
    /// The put of each text.
    texts: HashMap<u64, &'a Event>,
    /// Tick of the first get whose answer was lost.
    first_lost_get: u64,
}

impl Account {
    /// Accounts for a history, at whose end everything that is left was fetched.
    pub fn of(events: &[Event]) -> Self {
        let mut account = Account::default();
        let mut messages: HashMap<&str, Message<'_>> = HashMap::new();
        let mut facts = Facts {
            texts: HashMap::new(),
            first_lost_get: u64::MAX,
        };
        for event in events {
            account.count(event);
            match &event.what {
                What::Put { text, made } => {
                    facts.texts.insert(*text, event);
                    if let Some(given) = made {
                        let message = messages.entry(&given.id).or_default();
                        message.grants.push(Grant { given, event });
                    }
                }
                What::Got { messages: got } => {
                    if event.returned.is_none() {
                        facts.first_lost_get = facts.first_lost_get.min(event.called);
                    }
                    for given in got {
                        let message = messages.entry(&given.id).or_default();
                        message.grants.push(Grant { given, event });
                    }
                }
                What::Update {
                    id,
                    receipt,
                    outcome,
                    visible_s,
                } => {
                    let visible_s = Some(*visible_s);
                    let used = Use {
                        receipt,
                        outcome,
                        event,
                        visible_s,
                    };
                    messages.entry(id).or_default().uses.push(used);
                }
                What::Delete {
                    id,
                    receipt,
                    outcome,
                } => {
                    let used = Use {
                        receipt,
                        outcome,
                        event,
                        visible_s: None,
                    };
                    messages.entry(id).or_default().uses.push(used);
                }
            }
        }
        for (id, mut message) in messages {
            message
                .grants
                .sort_by_key(|grant| (grant.given.count, grant.event.called));
            let found = message.judge(&facts);
            found
                .into_iter()
                .for_each(|(wrong, what)| account.find(wrong, id, &what));
        }
        account.findings.sort();
        account
    }

    /// Whether there is no error.
    pub fn is_clean(&self) -> bool {
        self.wrong.is_empty()
    }

    fn count(&mut self, event: &Event) {
        match &event.what {
            What::Put { made: Some(_), .. } => self.put += 1,
            What::Put { made: None, .. } => self.put_lost += 1,
            What::Got { messages } => {
                let messages = messages.len() as u64;
                self.got += messages;
                self.left += if event.client == DRAIN { messages } else { 0 };
            }
            What::Update { outcome, .. } | What::Delete { outcome, .. } => match outcome {
                Outcome::Deleted => self.deleted += 1,
                Outcome::Updated(_) => self.updated += 1,
                Outcome::Refused(_) => self.refused += 1,
                Outcome::Lost => {}
            },
        }
    }

    fn find(&mut self, wrong: Wrong, id: &str, what: &str) {
        *self.wrong.entry(wrong).or_default() += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings
                .push(format!("{wrong:?}: message {id}: {what}"));
        }
    }
}

impl std::fmt::Display for Account {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "{} put ({} without an answer), {} got, {} updated, {} deleted, {} refused, {} left",
            self.put, self.put_lost, self.got, self.updated, self.deleted, self.refused, self.left
        )?;
        match self.is_clean() {
            true => write!(
                out,
                "; nothing lost, doubled, unexpected, resurrected or stale"
            ),
            false => write!(out, "; wrong: {:?}", self.wrong),
        }
    }
}

type Found = Vec<(Wrong, String)>;

impl<'a> Message<'a> {
    fn judge(&self, facts: &Facts<'_>) -> Found {
        let mut found = Vec::new();
        let chains = self.chains();
        self.judge_texts(facts, &mut found);
        self.judge_counts(facts, &mut found);
        let windows = self.windows(&chains);
        self.judge_windows(&windows, &mut found);
        self.judge_uses(&chains, &mut found);
        self.judge_refusals(&chains, &windows, facts, &mut found);
        self.judge_end(&mut found);
        found
    }

    /// Returns the index of the grant to which each receipt goes back: its own, or that of the
    /// receipt that it replaced.
    fn chains(&self) -> HashMap<&'a str, usize> {
        let own = self.grants.iter().enumerate();
        let mut chains: HashMap<&str, usize> = own
            .map(|(at, grant)| (grant.given.receipt.as_str(), at))
            .collect();
        let mut replaced: Vec<(&str, &str, u64)> = Vec::new();
        for used in &self.uses {
            if let Outcome::Updated(new) = used.outcome {
                replaced.push((used.receipt, new, used.event.called));
            }
        }
        // A receipt is used after it was given, so the order of calls is that of the chain.
        replaced.sort_by_key(|(_, _, called)| *called);
        for (old, new, _) in replaced {
            if let Some(at) = chains.get(old).copied() {
                chains.insert(new, at);
            }
        }
        chains
    }

    fn judge_texts(&self, facts: &Facts<'_>, found: &mut Found) {
        let first = self.grants.first().map(|grant| grant.given.text);
        for grant in &self.grants {
            let put = facts.texts.get(&grant.given.text);
            let is_put = put.is_some_and(|put| put.called < grant.event.end());
            if !is_put || Some(grant.given.text) != first {
                found.push((Wrong::Unexpected, format!("text {}", grant.given.text)));
            }
        }
    }

    fn judge_counts(&self, facts: &Facts<'_>, found: &mut Found) {
        for pair in self.grants.windows(2) {
            let [one, other] = pair else { continue };
            let (count, next) = (one.given.count, other.given.count);
            if count == next {
                found.push((
                    Wrong::WhileInvisible,
                    format!("delivered twice with dequeue count {count}"),
                ));
            }
            let gap_of_nobody = next > count + 1 && facts.first_lost_get > other.event.end();
            if gap_of_nobody && count > 0 {
                found.push((
                    Wrong::Unexpected,
                    format!("nobody got dequeue count {}", count + 1),
                ));
            }
        }
        let mut first_end = u64::MAX;
        for grant in self.grants.iter().rev() {
            if grant.event.called > first_end {
                let what = format!("dequeue count {} after a higher one", grant.given.count);
                found.push((Wrong::Unexpected, what));
            }
            first_end = first_end.min(grant.event.end());
        }
    }

    /// Returns how long the owner of each grant keeps the message invisible.
    fn windows(&self, chains: &HashMap<&str, usize>) -> Vec<Window> {
        let own = self.grants.iter().map(|grant| Window {
            visible_s: grant.given.visible_s,
            since: grant.event.end(),
            is_certain: true,
        });
        let mut windows: Vec<Window> = own.collect();
        for used in &self.uses {
            let window = chains.get(used.receipt).and_then(|at| windows.get_mut(*at));
            match (window, used.outcome, used.visible_s) {
                (Some(window), Outcome::Updated(_), Some(visible_s))
                    if window.since < used.event.called =>
                {
                    window.visible_s = visible_s;
                    window.since = used.event.end();
                }
                (Some(window), Outcome::Updated(_) | Outcome::Lost, _) => {
                    window.is_certain = false;
                }
                _ => {}
            }
        }
        windows
    }

    /// Checks that each grant waits until the message is visible.
    fn judge_windows(&self, windows: &[Window], found: &mut Found) {
        for (window, pair) in windows.iter().zip(self.grants.windows(2)) {
            let [one, other] = pair else { continue };
            let is_next = other.given.count == one.given.count + 1;
            if is_next && window.forbids(other.event) {
                let (number, visible_s) = (other.given.count, window.visible_s);
                let what = format!("dequeue count {number} delivered before {visible_s} s");
                found.push((Wrong::WhileInvisible, what));
            }
        }
    }

    fn judge_uses(&self, chains: &HashMap<&str, usize>, found: &mut Found) {
        let later = self.first_ends_after();
        let mut worked: HashMap<&str, u64> = HashMap::new();
        for used in &self.uses {
            if !matches!(used.outcome, Outcome::Deleted | Outcome::Updated(_)) {
                continue;
            }
            *worked.entry(used.receipt).or_default() += 1;
            let at = chains.get(used.receipt).copied();
            match at {
                None => found.push((Wrong::StaleReceipt, "a receipt that nobody got".to_owned())),
                Some(at) if later[at] < used.event.called => {
                    let count = self.grants[at].given.count;
                    found.push((
                        Wrong::StaleReceipt,
                        format!("the receipt of dequeue count {count} worked"),
                    ));
                }
                Some(_) => {}
            }
        }
        for (receipt, times) in worked {
            if times > 1 {
                found.push((
                    Wrong::ReceiptTwice,
                    format!("{receipt} worked {times} times"),
                ));
            }
        }
    }

    fn judge_refusals(
        &self,
        chains: &HashMap<&str, usize>,
        windows: &[Window],
        facts: &Facts<'_>,
        found: &mut Found,
    ) {
        let refused = |used: &&Use<'_>| matches!(used.outcome, Outcome::Refused(_));
        for used in self.uses.iter().filter(refused) {
            let Some(at) = chains.get(used.receipt).copied() else {
                continue;
            };
            if !self.is_explained(used, at, &windows[at], chains, facts) {
                found.push((
                    Wrong::RefusedWrongly,
                    format!("{} was refused", used.receipt),
                ));
            }
        }
    }

    /// Returns for each grant the first tick at which a later one was over.
    fn first_ends_after(&self) -> Vec<u64> {
        let mut first = u64::MAX;
        let mut ends = vec![u64::MAX; self.grants.len()];
        for (at, grant) in self.grants.iter().enumerate().rev() {
            ends[at] = first;
            first = first.min(grant.event.end());
        }
        ends
    }

    /// Whether another call may have invalidated the receipt of the grant at this index.
    fn is_explained(
        &self,
        used: &Use<'_>,
        at: usize,
        window: &Window,
        chains: &HashMap<&str, usize>,
        facts: &Facts<'_>,
    ) -> bool {
        let until = used.event.end();
        let next = self.grants.get(at + 1);
        let is_given_on = next.is_some_and(|next| next.event.called < until);
        // A get without an answer took it: then a dequeue count is missing, or there is no next
        // one.
        let has_gap = next.is_none_or(|next| next.given.count > self.grants[at].given.count + 1);
        let is_taken = has_gap && facts.first_lost_get < until && !window.forbids(used.event);
        let is_used = self.uses.iter().any(|other| {
            !std::ptr::eq(other.event, used.event)
                && other.event.called < until
                && match other.outcome {
                    Outcome::Deleted | Outcome::Lost => true,
                    Outcome::Updated(_) => chains.get(other.receipt) == Some(&at),
                    Outcome::Refused(_) => false,
                }
        });
        is_given_on || is_taken || is_used
    }

    fn judge_end(&self, found: &mut Found) {
        let deletes = self
            .uses
            .iter()
            .filter(|used| *used.outcome == Outcome::Deleted);
        let deleted = deletes.map(|used| used.event.end()).min();
        let may_be_deleted = self
            .uses
            .iter()
            .any(|used| *used.outcome == Outcome::Lost && used.visible_s.is_none());
        let is_left = self.grants.iter().any(|grant| grant.event.client == DRAIN);
        let Some(deleted) = deleted else {
            if !is_left && !may_be_deleted && !self.grants.is_empty() {
                found.push((Wrong::Lost, "nobody deleted it".to_owned()));
            }
            return;
        };
        let given = self.grants.iter().any(|grant| grant.event.called > deleted);
        let done = |outcome: &Outcome| matches!(outcome, Outcome::Deleted | Outcome::Updated(_));
        let used = self
            .uses
            .iter()
            .any(|used| done(used.outcome) && used.event.called > deleted);
        if given || used {
            found.push((Wrong::Resurrected, "it was deleted".to_owned()));
        }
    }
}

#[cfg(test)]
mod tests;
