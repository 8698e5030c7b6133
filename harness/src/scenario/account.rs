//! The account of the planned faults of a run, and its audit.
//!
//! Every planned fault has either fired or is listed with the reason why it could not fire. A fault
//! that could have fired and did not fails the run.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

use super::faults::{Fault, Mishap, Operation};

/// State of a planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fate {
    /// No matching request was sent yet.
    #[default]
    Waiting,
    /// A request was chosen for it and is in flight.
    Taken,
    /// It happened.
    Fired,
    /// A request was chosen for it, but the worker died before the fault could happen.
    Overtaken,
}

/// The states of all planned faults of a run, and the requests that were sent meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Account {
    planned: Vec<(Fault, u64, Fate)>,
    sent: Vec<Sent>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent {
    operation: Operation,
    path: String,
    /// Number of the fault that this request met.
    fault: Option<usize>,
}

impl Account {
    /// Creates an account in which every fault is still waiting.
    pub fn new(faults: &[Fault]) -> Self {
        Account {
            planned: faults.iter().map(|f| (*f, 0, Fate::Waiting)).collect(),
            sent: Vec::new(),
        }
    }

    /// Records a request. Returns the number of the fault that it meets, and what happens to it.
    pub fn next(&mut self, request: &http::Request<Bytes>) -> Option<(usize, Mishap)> {
        let (operation, path) = (Operation::of(request), request.uri().path());
        let mut taken = None;
        for (number, (fault, seen, fate)) in self.planned.iter_mut().enumerate() {
            if !fault.aim.means(operation, path) {
                continue;
            }
            *seen += 1;
            let due = *fate == Fate::Waiting && *seen >= u64::from(fault.aim.nth);
            if due && taken.is_none() {
                *fate = Fate::Taken;
                taken = Some((number, fault.mishap));
            }
        }
        self.sent.push(Sent {
            operation,
            path: path.to_owned(),
            fault: taken.map(|(number, _)| number),
        });
        taken
    }

    /// Sets the state of the fault with this number.
    pub fn becomes(&mut self, number: usize, fate: Fate) {
        if let Some((_, _, it)) = self.planned.get_mut(number)
            && *it == Fate::Taken
        {
            *it = fate;
        }
    }
}

/// Counts of planned and fired faults, of one run or of many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of planned and of fired faults, by kind.
    pub kinds: BTreeMap<&'static str, (u64, u64)>,
    /// Number of faults that did not fire, by reason.
    pub unfired: BTreeMap<&'static str, u64>,
}

const NOT_SENT: &str = "no such request was sent";
const TOO_FEW: &str = "too few such requests were sent";
const OTHERS: &str = "other faults took all such requests";
const ON_ITS_WAY: &str = "its request was in flight at the end";
const OVERTAKEN: &str = "its worker died first";

impl Tally {
    /// Counts one fault; `unfired` is the reason why it did not fire.
    pub fn count(&mut self, kind: &'static str, unfired: Option<&'static str>) {
        let (planned, fired) = self.kinds.entry(kind).or_default();
        *planned += 1;
        match unfired {
            None => *fired += 1,
            Some(reason) => *self.unfired.entry(reason).or_default() += 1,
        }
    }

    /// Counts a fault rule of the service that matched `seen` requests.
    pub fn count_rule(&mut self, kind: &'static str, times: u64, fired: u64, seen: u64) {
        let why = if seen == 0 { NOT_SENT } else { TOO_FEW };
        for number in 0..times {
            self.count(kind, (number >= fired).then_some(why));
        }
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Tally) {
        for (kind, (planned, fired)) in &other.kinds {
            let sum = self.kinds.entry(kind).or_default();
            *sum = (sum.0 + planned, sum.1 + fired);
        }
        for (reason, count) in &other.unfired {
            *self.unfired.entry(reason).or_default() += count;
        }
    }

    /// Returns the number of planned faults.
    pub fn planned(&self) -> u64 {
        self.kinds.values().map(|(planned, _)| planned).sum()
    }

    /// Returns the number of faults that fired.
    pub fn fired(&self) -> u64 {
        self.kinds.values().map(|(_, fired)| fired).sum()
    }

    /// Returns the kinds that were planned but never fired.
    pub fn never_fired(&self) -> Vec<&'static str> {
        let never = self.kinds.iter().filter(|(_, (_, fired))| *fired == 0);
        never.map(|(kind, _)| *kind).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (planned, fired) = (self.planned(), self.fired());
        writeln!(
            f,
            "  {:<44} {planned:>7} {fired:>7}",
            "faults planned, fired"
        )?;
        for (kind, (planned, fired)) in &self.kinds {
            writeln!(f, "    {kind:<42} {planned:>7} {fired:>7}")?;
        }
        for (reason, count) in &self.unfired {
            writeln!(f, "    {:<50} {count:>7}", format!("unfired: {reason}"))?;
        }
        Ok(())
    }
}

/// Audits the account of a run. Returns the counts, and a message for each fault that could have
/// fired and did not, or that fired out of turn.
pub fn audit(account: &Account) -> (Tally, Vec<String>) {
    let (mut tally, mut wrong) = (Tally::default(), Vec::new());
    for (number, (fault, _, fate)) in account.planned.iter().enumerate() {
        // Recounts the requests that were sent; the account must agree.
        let matching = account
            .sent
            .iter()
            .filter(|sent| fault.aim.means(sent.operation, &sent.path));
        let count = matching.clone().count();
        let nth = usize::from(fault.aim.nth).max(1);
        let due: Vec<&Sent> = matching.skip(nth - 1).collect();
        let had = due.iter().position(|sent| sent.fault == Some(number));
        let free = due.iter().position(|sent| sent.fault.is_none());
        let missed = match (had, free) {
            (Some(had), Some(free)) => free < had,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let kept = had.is_none() == (*fate == Fate::Waiting);
        if missed || !kept {
            wrong.push(format!("{fault:?} could have fired but did not: {fate:?}"));
        }
        let unfired = match fate {
            Fate::Fired => None,
            Fate::Taken => Some(ON_ITS_WAY),
            Fate::Overtaken => Some(OVERTAKEN),
            Fate::Waiting if count == 0 => Some(NOT_SENT),
            Fate::Waiting if count < nth => Some(TOO_FEW),
            Fate::Waiting => Some(OTHERS),
        };
        tally.count(fault.mishap.kind(), unfired);
    }
    (tally, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::faults::Aim;

    fn request(method: &str, path: &str) -> http::Request<Bytes> {
        let uri = format!("http://localhost{path}");
        let request = http::Request::builder().method(method).uri(uri);
        request.body(Bytes::new()).unwrap()
    }

    fn fault(operation: Operation, nth: u16) -> Fault {
        let resource = "";
        Fault {
            aim: Aim {
                operation,
                resource,
                nth,
            },
            mishap: Mishap::AnswerLost,
        }
    }

    #[test]
    fn a_fault_fires_at_its_request_or_reports_why_not() {
        let faults = [
            fault(Operation::Delete, 2),
            fault(Operation::Change, 2),
            fault(Operation::List, 1),
        ];
        let mut account = Account::new(&faults);
        assert_eq!(account.next(&request("DELETE", "/a/c/b")), None);
        let taken = account.next(&request("DELETE", "/a/c/b"));
        assert_eq!(taken.map(|(number, _)| number), Some(0));
        account.becomes(0, Fate::Fired);
        let (tally, wrong) = audit(&account);
        assert_eq!(wrong, Vec::<String>::new());
        assert_eq!((tally.planned(), tally.fired()), (3, 1));
        let expected = BTreeMap::from([(NOT_SENT, 1), (OTHERS, 1)]);
        assert_eq!(tally.unfired, expected);
    }

    /// The audit finds a wire that forgets a fault.
    #[test]
    fn a_fault_that_could_have_fired_but_did_not_is_found() {
        let mut account = Account::new(&[fault(Operation::Delete, 1)]);
        let sent = |fault| Sent {
            operation: Operation::Delete,
            path: "/a/c/b".to_owned(),
            fault,
        };
        account.sent = vec![sent(None)];
        assert_eq!(audit(&account).1.len(), 1, "forgotten");
        account.sent = vec![sent(None), sent(Some(0))];
        account.planned[0].2 = Fate::Fired;
        assert_eq!(audit(&account).1.len(), 1, "out of turn");
        account.sent = vec![sent(Some(0))];
        assert_eq!(audit(&account).1.len(), 0);
    }
}
