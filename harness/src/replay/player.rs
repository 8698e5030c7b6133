//! Plays one recording against a target and compares every answer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use smalt::Clock;
use smalt_protocol::{Service, Timestamp};

use super::bindings::Bindings;
use super::compare::{Aspect, Comparer, Difference, dropped_headers};
use super::creation::start_of;
use super::delegation::DelegationKey;
use super::dropped;
use super::earlier::{self, DeletedContainer, ExistingBlob};
use super::hosts::{self, Addressing, Hosts};
use super::pace::Pace;
use super::prepare::{self, Preparer};
use super::recording::{Interaction, Recording};
use super::reruns;
use super::rules::RULES;
use super::settings::{self, AccountSettings};
use super::sources::{self, LostSource};
use super::superset::{self, Superset};
use crate::target::{Ability, Target, TargetError};
use crate::traces::convert::MISSING_BODY;
use crate::wire::url::{self, Url};
use crate::wire::{Answer, Request};

/// Timeout of a call in real time; the slowest correct call takes milliseconds.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Default of the longest total wait for one recording at a target whose clock cannot be set.
pub const WAIT_MAX: Duration = Duration::from_secs(5);
/// Why the rest of a recording is not played.
pub const CLOCK_IS_FIXED: &str = "the clock cannot be set";
/// Why a recording whose account held something old is not played.
pub const NOTHING_OLD: &str = "the clock cannot be set back for resources created long before";

/// Result of one interaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answers agree.
    Passed,
    /// The answers differ, with at least one difference.
    Failed(Vec<Difference>),
    /// The target answered that it does not implement this operation.
    NotBuilt,
    /// The interaction proves nothing, for this reason.
    Excused(String),
}

/// Result of one recording.
#[derive(Debug)]
pub struct Played {
    /// One outcome per interaction, in order.
    pub outcomes: Vec<Outcome>,
    /// Index of the first interaction that was not sent because it is too far ahead of the target's
    /// clock.
    pub too_far_ahead: Option<usize>,
    /// Number of uses of each of [`RULES`].
    pub rule_uses: Vec<u64>,
    /// Errors from creating what must exist beforehand.
    pub setup_problems: Vec<String>,
}

#[cfg(test)]
impl Played {
    /// Asserts that every exchange of the recording was played and passed.
    pub(crate) fn assert_whole(&self, recording: &Recording, name: &str) {
        assert_eq!(self.setup_problems, Vec::<String>::new(), "{name}");
        assert_eq!(self.outcomes.len(), recording.interactions.len(), "{name}");
        for (n, outcome) in self.outcomes.iter().enumerate() {
            assert_eq!(*outcome, Outcome::Passed, "{name}: exchange {n}");
        }
    }
}

/// One recording while it is played.
struct Player<'a> {
    target: Arc<dyn Target>,
    recording: &'a Recording,
    hosts: Hosts,
    bindings: Bindings,
    pace: Pace,
    delegation_key: Option<DelegationKey>,
    /// Names in the requests so far.
    own: BTreeSet<String>,
    dropped: BTreeSet<&'static str>,
    played: Played,
}

/// Plays a recording; each run of its test starts from a fresh state.
pub async fn play(target: Arc<dyn Target>, recording: &Recording) -> Played {
    play_waiting(target, recording, WAIT_MAX).await
}

/// Like [`play`]. Where the target's clock cannot be set, it waits for the recorded times, in total
/// at most `wait_max`; later interactions are excused.
pub async fn play_waiting(
    target: Arc<dyn Target>,
    recording: &Recording,
    wait_max: Duration,
) -> Played {
    let mut wait_left = wait_max;
    let mut whole = nothing_played(recording);
    for run in reruns::split(recording) {
        let mut run = sources::restored(&run);
        dropped::restore(&mut run);
        let played = play_run(Arc::clone(&target), &run, &mut wait_left).await;
        let before = whole.outcomes.len();
        let too_far_ahead = played.too_far_ahead.map(|n| before + n);
        whole.too_far_ahead = whole.too_far_ahead.or(too_far_ahead);
        whole.outcomes.extend(played.outcomes);
        whole.setup_problems.extend(played.setup_problems);
        for (sum, uses) in whole.rule_uses.iter_mut().zip(played.rule_uses) {
            *sum += uses;
        }
    }
    whole
}

async fn play_run(
    target: Arc<dyn Target>,
    recording: &Recording,
    wait_left: &mut Duration,
) -> Played {
    let hosts = Hosts::of(recording, Addressing::of(target.about()));
    let settings = settings::infer(recording, hosts.accounts());
    let blobs = earlier::blobs(recording);
    let deleted = earlier::deleted_containers(recording);
    let about = target.about();
    // A clock that cannot be set is assumed to agree with this machine's.
    let own_clock = (!about.can(Ability::Clock)).then(Clock::system);
    let is_old = |blob: &ExistingBlob| blob.created < start_of(recording);
    let needs_past = !deleted.is_empty() || blobs.iter().any(is_old);
    let needs_past = (own_clock.is_some() && needs_past).then_some(NOTHING_OLD);
    let start = start_of(recording);
    let start = blobs.first().map_or(start, |oldest| oldest.created);
    let oldest = deleted.iter().map(|one| one.changed).min();
    let start = oldest.map_or(start, |oldest| oldest.min(start));
    let setup = settings.setup(start);
    let unusual = setup.unusual().filter(|_| !about.can(Ability::Settings));
    if let Some(why) = unusual.or(needs_past) {
        return excused(recording, why);
    }
    let mut player = Player {
        recording,
        hosts,
        bindings: Bindings::default(),
        pace: Pace::new(own_clock, start, *wait_left),
        delegation_key: None,
        own: BTreeSet::new(),
        dropped: dropped_headers(|header| recording.never_answers_with(header)),
        played: nothing_played(recording),
        target,
    };
    if let Err(error) = player.target.reset(&setup).await {
        player.played.setup_problems.push(error.to_string());
    }
    for container in &deleted {
        player.set_up_deleted(container).await;
    }
    player.set_up(&settings).await;
    for blob in &blobs {
        player.set_up_blob(blob).await;
    }
    for source in sources::lost(recording) {
        player.set_up_source(source).await;
    }
    for interaction in &recording.interactions {
        let outcome = player.interaction(interaction).await;
        player.played.outcomes.push(outcome);
    }
    *wait_left = player.pace.wait_left();
    player.played
}

fn nothing_played(recording: &Recording) -> Played {
    Played {
        outcomes: Vec::with_capacity(recording.interactions.len()),
        too_far_ahead: None,
        rule_uses: vec![0; RULES.len()],
        setup_problems: Vec::new(),
    }
}

/// Returns the result of a recording that proves nothing at this target.
fn excused(recording: &Recording, why: &str) -> Played {
    let mut played = nothing_played(recording);
    let excuses = recording.interactions.iter();
    let excuses = excuses.map(|_| Outcome::Excused(why.to_owned()));
    played.outcomes.extend(excuses);
    played
}

impl Player<'_> {
    /// Creates what must exist before the first request.
    async fn set_up(&mut self, settings: &AccountSettings) {
        let service = self.recording.service;
        if let Some(body) = settings::service_properties(settings, service) {
            let path = "/?restype=service&comp=properties";
            for account in &settings.accounts {
                self.set_up_one("PUT", account, path, &[], Bytes::from(body.clone()))
                    .await;
            }
        }
        let first = self.recording.interactions.first().map(|i| &i.request);
        let Some(first) = first.and_then(|r| prepare::account_of(&self.hosts, r)) else {
            return;
        };
        for existing in settings::existing(self.recording) {
            let encoded = url::encode(&existing.name);
            let account = existing
                .account
                .as_deref()
                .and_then(|a| self.hosts.name_of(a));
            let account = account.unwrap_or(&first).to_owned();
            let (method, path, body, deletion) = match service {
                Service::Blob => {
                    let path = format!("/{encoded}?restype=container");
                    ("PUT", path.clone(), Bytes::new(), path)
                }
                Service::Queue => (
                    "PUT",
                    format!("/{encoded}"),
                    Bytes::new(),
                    format!("/{encoded}"),
                ),
                Service::Table => {
                    let body = serde_json::json!({ "TableName": existing.name }).to_string();
                    let deletion = format!("/Tables('{encoded}')");
                    ("POST", "/Tables".to_owned(), Bytes::from(body), deletion)
                }
            };
            self.set_up_one(method, &account, &path, &[], body).await;
            if existing.being_deleted {
                self.set_up_one("DELETE", &account, &deletion, &[], Bytes::new())
                    .await;
            }
        }
    }

    /// Creates a container at the time of its deletion, and deletes it.
    async fn set_up_deleted(&mut self, container: &DeletedContainer) {
        let Some(account) = self.hosts.name_of(&container.account).map(str::to_owned) else {
            return;
        };
        let path = format!("/{}?restype=container", url::encode(&container.name));
        for (method, at) in [("PUT", container.changed), ("DELETE", container.at)] {
            self.set_up_at(at).await;
            self.set_up_one(method, &account, &path, &[], Bytes::new())
                .await;
        }
    }

    /// Advances the clock to the time of the next resource.
    async fn set_up_at(&mut self, time: Timestamp) {
        if let Err(error) = self.pace.prepare(&*self.target, time).await {
            self.played.setup_problems.push(error.to_string());
        }
    }

    /// Creates a blob at its creation time.
    async fn set_up_blob(&mut self, blob: &ExistingBlob) {
        self.set_up_at(blob.created).await;
        let Some(account) = self.hosts.name_of(&blob.account).map(str::to_owned) else {
            return;
        };
        let kind = [("x-ms-blob-type", blob.kind)];
        self.set_up_one("PUT", &account, &blob.path, &kind, Bytes::new())
            .await;
    }

    /// Creates a blob from which copies read.
    async fn set_up_source(&mut self, source: LostSource) {
        let near = Url::parse(&source.near).and_then(|near| self.hosts.locate(&near, None));
        let near = near.map(|(account, _)| account);
        let Some((account, _)) = self.hosts.locate(&source.url, near.as_deref()) else {
            return;
        };
        for (query, headers, has_body) in source.steps() {
            let path = format!("{}{query}", source.url.path);
            let headers: Vec<_> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
            let body = if has_body {
                source.content.clone()
            } else {
                Bytes::new()
            };
            self.set_up_one("PUT", &account, &path, &headers, body)
                .await;
        }
    }

    async fn set_up_one(
        &mut self,
        method: &str,
        account: &str,
        path: &str,
        more: &[(&str, &str)],
        body: Bytes,
    ) {
        let Some(owner) = hosts::account(account) else {
            return;
        };
        let service = self.recording.service;
        let media_type = if service == Service::Table && method == "POST" {
            "application/json"
        } else {
            "application/xml"
        };
        let headers = [&[("content-type", media_type)][..], more].concat();
        let line = (method, self.hosts.url(account, service, path));
        let request = owner.request(service, self.pace.now(), line, &headers, body);
        let problem = match self.call(request).await {
            Ok(response) if response.status < 300 => return,
            Ok(response) => {
                let code = response.error_code().unwrap_or_default();
                format!("{} {code}", response.status)
            }
            Err(error) => error.to_string(),
        };
        self.played
            .setup_problems
            .push(format!("{method} {path}: {problem}"));
    }

    async fn interaction(&mut self, interaction: &Interaction) -> Outcome {
        self.target.begin().await;
        self.own.extend(superset::names_in(&interaction.request));
        match self.pace.reach(&*self.target, interaction.date).await {
            Ok(true) => {}
            Ok(false) => return Outcome::Excused(CLOCK_IS_FIXED.to_owned()),
            Err(error) => {
                if matches!(error, TargetError::TooFarAhead { .. }) {
                    let this = self.played.outcomes.len();
                    self.played.too_far_ahead.get_or_insert(this);
                }
                return failed_call(interaction, &error);
            }
        }
        let now = self.pace.now();
        let preparer = Preparer {
            hosts: &self.hosts,
            bindings: &self.bindings,
            now,
            timeline: self.pace.timeline(),
            delegation_key: self.delegation_key.as_ref(),
            account_listing: self.recording.has_flag("account_listing"),
        };
        let request = match preparer.prepare(interaction) {
            Ok(request) => request,
            Err(why) => return Outcome::Excused(why.to_string()),
        };
        let live = match self.call(request).await {
            Ok(live) => live,
            Err(error) => return failed_call(interaction, &error),
        };
        if is_not_built(&live) && interaction.response.status != live.status {
            return Outcome::NotBuilt;
        }
        if let Some(key) = DelegationKey::of(&live) {
            self.delegation_key = Some(key);
        }
        let differences = self.compare(interaction, &live);
        if differences.is_empty() {
            Outcome::Passed
        } else {
            Outcome::Failed(differences)
        }
    }

    fn compare(&mut self, interaction: &Interaction, live: &Answer) -> Vec<Difference> {
        let account = prepare::account_of(&self.hosts, &interaction.request).unwrap_or_default();
        let superset = self.recording.has_flag("account_listing")
            && superset::lists_account(&interaction.request);
        let mut comparer = Comparer {
            hosts: &self.hosts,
            bindings: &mut self.bindings,
            rule_uses: &mut self.played.rule_uses,
            account: &account,
            dropped: &self.dropped,
            timeline: self.pace.timeline(),
            reserialised: self.recording.has_note("json_reserialised"),
            superset: superset.then(|| Superset {
                own: &self.own,
                partial: superset::is_partial(interaction),
            }),
        };
        let mut differences =
            comparer.compare(&interaction.request.method, &interaction.response, live);
        let missing = format!("{MISSING_BODY}{}", interaction.n);
        if self.recording.has_note(&missing) {
            differences.retain(|one| one.aspect != Aspect::Body);
        }
        differences
    }

    /// Calls the target in its own task, so that a panic or a hang ends this call only.
    async fn call(&self, request: Request) -> Result<Answer, TargetError> {
        let target = Arc::clone(&self.target);
        let mut task = tokio::spawn(async move { target.call(request).await });
        match tokio::time::timeout(CALL_TIMEOUT, &mut task).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(ended)) => Err(TargetError::Call(format!("the target panicked: {ended}"))),
            Err(_) => {
                task.abort();
                Err(TargetError::Call(format!(
                    "none within {} s",
                    CALL_TIMEOUT.as_secs()
                )))
            }
        }
    }
}

fn failed_call(interaction: &Interaction, error: &TargetError) -> Outcome {
    Outcome::Failed(vec![Difference {
        aspect: Aspect::Call,
        at: "call".to_owned(),
        recorded: interaction.response.status.to_string(),
        live: error.to_string(),
    }])
}

/// Whether the answer is the one for an operation that is known but not implemented.
fn is_not_built(live: &Answer) -> bool {
    live.status == 501 && live.error_code().as_deref() == Some("NotImplemented")
}
