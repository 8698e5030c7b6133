//! Work under a lease: never by two holders at once, and never after the lease has ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smalt::Exchange;
use smalt_protocol::Timestamp;

use super::TestAccount;
use super::blind::path_of;

/// A watch over the work under one lease. Clones share the watch.
#[derive(Clone, Debug)]
pub struct LeasedSection {
    account: TestAccount,
    path: String,
    stays: Arc<Mutex<Vec<Stay>>>,
}

#[derive(Clone, Debug)]
struct Stay {
    lease_id: String,
    from: Timestamp,
    until: Option<Timestamp>,
}

/// Work under a lease; it ends on drop.
#[derive(Debug)]
pub struct Inside {
    section: LeasedSection,
    number: usize,
}

/// Periods for which each lease was granted: start, and end unless something else happens.
type Grants = BTreeMap<String, Vec<(Timestamp, Timestamp)>>;

impl LeasedSection {
    pub(super) fn new(account: TestAccount, path: &str) -> Self {
        LeasedSection {
            account,
            path: path.to_owned(),
            stays: Arc::default(),
        }
    }

    /// Starts work that only the holder of this lease may do.
    #[must_use = "the work ends when this is dropped"]
    pub fn enter(&self, lease_id: &str) -> Inside {
        let mut stays = self.lock();
        stays.push(Stay {
            lease_id: lease_id.to_ascii_lowercase(),
            from: self.account.now(),
            until: None,
        });
        Inside {
            section: self.clone(),
            number: stays.len() - 1,
        }
    }

    /// Asserts that no two worked at once, and each only while the service granted it the lease.
    ///
    /// # Panics
    /// With who worked when, and the periods of the lease.
    #[track_caller]
    pub fn assert_never_held_twice(&self) {
        let (stays, now) = (self.lock().clone(), self.account.now());
        for (number, later) in stays.iter().enumerate() {
            let inside = |stay: &&Stay| stay.until.is_none_or(|until| until > later.from);
            let others = stays[..number]
                .iter()
                .filter(|s| s.lease_id != later.lease_id);
            if let Some(earlier) = others.into_iter().find(inside) {
                super::fail(format!(
                    "two holders worked under the lease of {} at once: {} since {}, {} since {}",
                    self.path, earlier.lease_id, earlier.from, later.lease_id, later.from
                ));
            }
        }
        let grants = grants(&self.account.history(), &self.path);
        for stay in &stays {
            let until = stay.until.unwrap_or(now);
            let granted = grants
                .get(&stay.lease_id)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let covers = |(from, to): &(Timestamp, Timestamp)| *from <= stay.from && *to >= until;
            if !granted.iter().any(covers) {
                super::fail(format!(
                    "{} worked under the lease of {} from {} to {until}; the lease was granted {}",
                    stay.lease_id,
                    self.path,
                    stay.from,
                    spans(granted)
                ));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Stay>> {
        self.stays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let now = self.section.account.now();
        if let Some(stay) = self.section.lock().get_mut(self.number) {
            stay.until = Some(now);
        }
    }
}

fn spans(granted: &[(Timestamp, Timestamp)]) -> String {
    if granted.is_empty() {
        return "never".to_owned();
    }
    let spans = granted
        .iter()
        .map(|(from, to)| format!("from {from} to {to}"));
    spans.collect::<Vec<_>>().join(", ")
}

/// Returns the periods for which the service granted each lease of this path ("Lease Blob", "Lease
/// Container").
fn grants(history: &[Exchange], path: &str) -> Grants {
    let mut grants = Grants::new();
    let mut duration = None;
    let done = |e: &&Exchange| e.response.status().is_success() && path_of(e) == path;
    for exchange in history.iter().filter(done) {
        let Some((_, action)) = exchange.operation.and_then(|id| id.split_once('_')) else {
            continue;
        };
        let answered = header(exchange.response.headers(), "x-ms-lease-id");
        let asked = header(exchange.request.headers(), "x-ms-lease-id");
        match (action, answered) {
            ("AcquireLease", Some(id)) => {
                let seconds = header(exchange.request.headers(), "x-ms-lease-duration");
                duration = seconds
                    .and_then(|s| s.parse().ok())
                    .map(Duration::from_secs);
                extend(&mut grants, id, exchange.at, duration);
            }
            ("RenewLease", Some(id)) => extend(&mut grants, id, exchange.at, duration),
            ("ChangeLease", Some(id)) => {
                let until = grants.values().flatten().map(|(_, to)| *to).max();
                end(&mut grants, asked.as_deref(), exchange.at);
                let until = until.unwrap_or(exchange.at);
                grants.entry(id).or_default().push((exchange.at, until));
            }
            ("ReleaseLease", _) => end(&mut grants, asked.as_deref(), exchange.at),
            ("BreakLease", _) => {
                let left = header(exchange.response.headers(), "x-ms-lease-time");
                let left = left.and_then(|s| s.parse().ok()).unwrap_or(0);
                end(
                    &mut grants,
                    None,
                    exchange.at.plus(Duration::from_secs(left)),
                );
            }
            _ => {}
        }
    }
    grants
}

/// Grants a lease from `at` for its duration, or without end; extends a period that still runs.
fn extend(grants: &mut Grants, id: String, at: Timestamp, duration: Option<Duration>) {
    let until = duration.map_or(Timestamp::MAX, |duration| at.plus(duration));
    let spans = grants.entry(id).or_default();
    match spans.last_mut() {
        Some((_, to)) if *to >= at => *to = until,
        _ => spans.push((at, until)),
    }
}

/// Ends a lease, or all of them, at `at` at the latest.
fn end(grants: &mut Grants, id: Option<&str>, at: Timestamp) {
    let ended = grants
        .iter_mut()
        .filter(|(of, _)| id.is_none_or(|id| id == *of));
    for (_, to) in ended.flat_map(|(_, spans)| spans) {
        *to = (*to).min(at);
    }
}

fn header(headers: &http::HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.to_ascii_lowercase())
}
