//! The account of a queue's history: what was put, got, deleted, and what must not have happened.
//!
//! Each message is looked at by itself. Its dequeue counts put the times that it was given out in
//! order, so that nothing has to be searched: sorting them is all that is not linear. Calls that
//! overlap may have taken effect in either order, and what a lost call did nobody knows: a finding
//! is only what no such doubt explains.

use std::collections::{BTreeMap, HashMap};

use super::events::{DRAIN, Event, Given, Outcome, What};

/// Most findings that are kept; the rest is counted.
const FINDINGS_MAX: usize = 20;

/// Something that must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrong {
    /// A message is gone that nobody deleted.
    Lost,
    /// A message was given out while it was invisible.
    WhileInvisible,
    /// A message was given out that nobody put, or with another's text, or out of its order.
    Unexpected,
    /// A message was given out or changed after it was deleted.
    Resurrected,
    /// A receipt worked although the message was given to somebody else since.
    StaleReceipt,
    /// One receipt worked twice.
    ReceiptTwice,
    /// The only receipt that can work was refused.
    RefusedWrongly,
}

/// The account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Messages whose put was answered.
    pub put: u64,
    /// Puts without an answer.
    pub put_lost: u64,
    /// Times that a message was given out.
    pub got: u64,
    /// Updates that were done.
    pub updated: u64,
    /// Messages deleted.
    pub deleted: u64,
    /// Uses of receipts that were refused.
    pub refused: u64,
    /// Messages that were left at the end.
    pub left: u64,
    /// How often each wrong thing happened.
    pub wrong: BTreeMap<Wrong, u64>,
    /// The first of them.
    pub findings: Vec<String>,
}

/// A message in somebody's hands: put (count 0) or given out.
struct Grant<'a> {
    given: &'a Given,
    event: &'a Event,
}

/// A receipt in use.
struct Use<'a> {
    receipt: &'a str,
    outcome: &'a Outcome,
    event: &'a Event,
    visible_s: Option<u64>,
}

/// How long a grant keeps the message invisible, and from which tick on that is known.
struct Window {
    visible_s: u64,
    since: u64,
    is_certain: bool,
}

impl Window {
    /// Whether nobody can be given the message in this call.
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

/// What counts for every message.
struct Facts<'a> {
    /// When each text was put.
    texts: HashMap<u64, &'a Event>,
    /// When the first get was called whose answer was lost.
    first_lost_get: u64,
}

impl Account {
    /// Makes the account of a history that ends with everything fetched that was left.
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

    /// Whether nothing is wrong.
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

    /// The grant that each receipt goes back to: its own, or that of the receipt it replaced.
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
        // A receipt is used after it was given: the order of calls is that of the chain.
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
                    format!("given out twice as number {count}"),
                ));
            }
            let gap_of_nobody = next > count + 1 && facts.first_lost_get > other.event.end();
            if gap_of_nobody && count > 0 {
                found.push((
                    Wrong::Unexpected,
                    format!("nobody got number {}", count + 1),
                ));
            }
        }
        let mut first_end = u64::MAX;
        for grant in self.grants.iter().rev() {
            if grant.event.called > first_end {
                let what = format!("number {} after a higher one", grant.given.count);
                found.push((Wrong::Unexpected, what));
            }
            first_end = first_end.min(grant.event.end());
        }
    }

    /// Until when the holder of each grant keeps the message invisible.
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

    /// The next grant has to wait until the message is visible.
    fn judge_windows(&self, windows: &[Window], found: &mut Found) {
        for (window, pair) in windows.iter().zip(self.grants.windows(2)) {
            let [one, other] = pair else { continue };
            let is_next = other.given.count == one.given.count + 1;
            if is_next && window.forbids(other.event) {
                let (number, visible_s) = (other.given.count, window.visible_s);
                let what = format!("number {number} given out before {visible_s} s");
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
                        format!("that of number {count} worked"),
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

    /// For each grant the first tick at which a later one was over.
    fn first_ends_after(&self) -> Vec<u64> {
        let mut first = u64::MAX;
        let mut ends = vec![u64::MAX; self.grants.len()];
        for (at, grant) in self.grants.iter().enumerate().rev() {
            ends[at] = first;
            first = first.min(grant.event.end());
        }
        ends
    }

    /// Whether somebody else may have made this receipt useless: that of the grant at this place.
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
        // A get without an answer took it: then there is a number that nobody has, or no next one.
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
