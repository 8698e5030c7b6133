//! The world of one run: the service, the wire, the accounts, and time.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use azure_core::http::{ClientOptions, Url};
use azure_storage_queue::{QueueServiceClient, QueueServiceClientOptions};
use proptest::prelude::*;
use smalt::config::{AccountSettings, Config};
use smalt::faults::{Fault, Rule};
use smalt::{Emulator, Timestamp};
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;
use smalt_sleeve::port::Storage;
use smalt_sleeve::{
    Account, AzureStorage, Clock, Credential, RetrySettings, Settings, SystemClock, TokioClock,
};
use tempfile::TempDir;

use super::account::{self, Tally};
use super::actor::Actor;
use super::campaign::Violation;
use super::faults::Fault as WireFault;
use super::history::Happening;
use super::wire::{Service, Wire, stepping};

/// In process: name of the account for dead blobs.
pub const DEAD_ACCOUNT_NAME: &str = "deadaccount1";
/// Key of that account; a test value, not a secret.
const DEAD_ACCOUNT_KEY: &str = "c2NlbmFyaW9zIG9mIHNtYWx0OiB0aGUgYWNjb3VudCBmb3IgZGVhZCBibG9icw==";
/// Time at which in-process runs begin: 2026-11-21 10:00:00.
const START_UNIX_S: u64 = 1_795_255_200;

/// The storage engine of an emulator in process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// In memory.
    #[default]
    Memory,
    /// Sled and payload files in a temporary directory, without syncs.
    Sled,
}

/// The service of a run, and access to it. Clones share it.
#[derive(Clone)]
pub struct World {
    /// The wire that carries every request.
    pub wire: Arc<Wire>,
    emulator: Option<Emulator>,
    /// Removed after the emulator that uses it.
    _dir: Option<Arc<TempDir>>,
    clock: Arc<dyn Clock>,
    accounts: [Account; 2],
    retry: RetrySettings,
}

/// The accounts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The account that the workers process.
    Main,
    /// The account for dead blobs.
    Dead,
}

impl World {
    /// Creates an emulator on tokio's clock. Needs a runtime with paused time.
    ///
    /// # Errors
    /// A description, when the emulator does not open.
    pub fn in_process(engine: Engine, seed: u64) -> Result<Self, String> {
        Self::open(engine, Config::default(), false, seed)
    }

    /// Like [`World::in_process`], with messages that become visible at the same time in random
    /// order.
    ///
    /// # Errors
    /// A description, when the emulator does not open.
    pub fn in_process_shuffled(engine: Engine, seed: u64) -> Result<Self, String> {
        let config = Config {
            shuffle_messages: true,
            ..Config::default()
        };
        Self::open(engine, config, false, seed)
    }

    /// Like [`World::in_process`], with accounts that have a hierarchical namespace.
    ///
    /// # Errors
    /// A description, when the emulator does not open.
    pub fn in_process_hierarchical(engine: Engine, seed: u64) -> Result<Self, String> {
        Self::open(engine, Config::default(), true, seed)
    }

    fn open(
        engine: Engine,
        mut config: Config,
        hierarchical: bool,
        seed: u64,
    ) -> Result<Self, String> {
        let start = Timestamp::from_unix_s(START_UNIX_S);
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(start));
        let key = AccountKey::parse(DEAD_ACCOUNT_KEY).ok_or("the key of the account for dead")?;
        let dead = smalt::config::Account::with_key(key);
        config.accounts.insert(DEAD_ACCOUNT_NAME.to_owned(), dead);
        for account in config.accounts.values_mut() {
            account.settings = Arc::new(AccountSettings {
                hierarchical_namespace: hierarchical,
                ..AccountSettings::default()
            });
        }
        let builder = Emulator::builder()
            .config(config)
            .clock(smalt::Clock::tokio(start))
            .seed(seed);
        let dir = match engine {
            Engine::Memory => None,
            Engine::Sled => Some(tempfile::tempdir().map_err(|error| error.to_string())?),
        };
        // A committer on its own thread would answer in a different order in every run, so the wire
        // runs its steps.
        let builder = match &dir {
            Some(dir) => builder.fast(dir.path()).stepped(),
            None => builder,
        };
        let emulator = builder.open().map_err(|error| error.to_string())?;
        let account = |name: &str, key: &str| {
            let credential = Credential::key(key)?;
            let blob = format!("http://127.0.0.1:10000/{name}");
            let queue = format!("http://127.0.0.1:10001/{name}");
            Account::new(name, Some(&blob), Some(&queue), credential)
        };
        let main = account(EMULATOR_ACCOUNT_NAME, EMULATOR_ACCOUNT_KEY);
        let dead = account(DEAD_ACCOUNT_NAME, DEAD_ACCOUNT_KEY);
        let accounts = [
            main.map_err(|error| error.to_string())?,
            dead.map_err(|error| error.to_string())?,
        ];
        Ok(World {
            wire: Wire::new(Service::InProcess(emulator.clone()), Arc::clone(&clock)),
            emulator: Some(emulator),
            _dir: dir.map(Arc::new),
            clock,
            accounts,
            retry: RetrySettings::default(),
        })
    }

    /// Creates a world for a service behind sockets, on this machine's clock.
    pub fn over_sockets(service: Service, main: Account, dead: Account) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        World {
            wire: Wire::new(service, Arc::clone(&clock)),
            emulator: None,
            _dir: None,
            clock,
            accounts: [main, dead],
            retry: RetrySettings::default(),
        }
    }

    /// Returns the name of an account.
    pub fn name(&self, which: Which) -> &str {
        self.accounts[which as usize].name()
    }

    /// Whether time is virtual, so that everything takes exactly as long as planned.
    pub fn is_virtual(&self) -> bool {
        self.emulator.is_some()
    }

    /// Deletes a queue of the main account; over sockets it does nothing.
    ///
    /// # Errors
    /// A description of the service's error.
    pub async fn delete_queue(&self, queue: &str) -> Result<(), String> {
        let Some(emulator) = &self.emulator else {
            return Ok(());
        };
        let options = QueueServiceClientOptions {
            client_options: ClientOptions {
                transport: Some(emulator.sdk_transport()),
                ..ClientOptions::default()
            },
            ..QueueServiceClientOptions::default()
        };
        let endpoint = format!("http://127.0.0.1:10001/{}/", self.name(Which::Main));
        let endpoint = Url::parse(&endpoint).map_err(|error| error.to_string())?;
        let service = QueueServiceClient::new(endpoint, None, Some(options));
        let queue = service.and_then(|service| service.queue_client(queue));
        let queue = queue.map_err(|error| error.to_string())?;
        let deleted = stepping(emulator, queue.delete(None)).await;
        deleted.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Returns an actor's client for an account.
    ///
    /// # Errors
    /// A description, when the account cannot be opened.
    pub fn storage(
        &self,
        which: Which,
        actor: &Arc<Actor>,
        seed: u64,
    ) -> Result<Arc<dyn Storage>, String> {
        self.storage_afar(which, actor, seed, Duration::ZERO)
    }

    /// Like [`World::storage`], from far away: each direction takes `lag`.
    ///
    /// # Errors
    /// A description, when the account cannot be opened.
    pub fn storage_afar(
        &self,
        which: Which,
        actor: &Arc<Actor>,
        seed: u64,
        lag: Duration,
    ) -> Result<Arc<dyn Storage>, String> {
        let settings = Settings {
            clock: self.clock_of(actor),
            retry: self.retry,
            seed: Some(seed),
            ..Settings::default()
        };
        let account = self.accounts[which as usize].clone();
        let transport = self.wire.transport(actor, lag);
        let storage =
            AzureStorage::open(account, transport, settings).map_err(|error| error.to_string())?;
        Ok(Arc::new(storage))
    }

    /// Returns the clock of an actor's machine.
    fn clock_of(&self, actor: &Arc<Actor>) -> Arc<dyn Clock> {
        Arc::new(Skewed {
            clock: Arc::clone(&self.clock),
            skew_s: actor.skew_s,
            drift: actor.drift,
        })
    }

    /// Returns the clock of an actor's machine as a function.
    pub fn wall_clock(&self, actor: &Arc<Actor>) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let clock = self.clock_of(actor);
        Arc::new(move || clock.now())
    }

    /// Plans the faults of a run.
    pub fn trouble(&self, trouble: &Trouble) {
        self.wire.plan(&trouble.faults);
        if let Some(emulator) = &self.emulator {
            for rule in &trouble.rules {
                emulator.faults().add(rule.clone());
            }
        }
    }

    /// Ends all faults and audits them: a fault that could have fired and did not is a violation.
    pub fn calm(&self) -> (Tally, Vec<Violation>) {
        let (mut tally, mut wrong) = account::audit(&self.wire.calm());
        if let Some(emulator) = &self.emulator {
            for account in emulator.faults().account() {
                let (rule, fired, seen) = (&account.rule, account.fired, account.seen);
                let due = (seen + 1).saturating_sub(rule.nth.max(1)).min(rule.times);
                if fired != due {
                    wrong.push(format!("{rule:?} fired {fired} of {due} times"));
                }
                tally.count_rule(kind(&rule.fault), rule.times, fired, seen);
            }
            emulator.faults().clear();
        }
        self.wire.note("harness", Happening::Calm);
        let wrong = wrong.into_iter();
        (
            tally,
            wrong
                .map(|what| Violation::of_run("faults", what))
                .collect(),
        )
    }
}

/// The faults of a run.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    /// Faults on the wire, by number of the workers' requests.
    pub faults: Vec<WireFault>,
    /// Fault rules of the service.
    pub rules: Vec<Rule>,
}

/// A clock with an error, which is constant or drifts to its opposite.
#[derive(Debug)]
struct Skewed {
    clock: Arc<dyn Clock>,
    skew_s: i32,
    drift: Option<(Timestamp, Duration)>,
}

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        let turned = self.drift.map_or(0.0, |(from, over)| {
            let passed = now.since(from).min(over);
            2.0 * passed.as_secs_f64() / over.as_secs_f64()
        });
        let skew_s = f64::from(self.skew_s) * (1.0 - turned);
        let by = Duration::from_secs_f64(skew_s.abs());
        match skew_s >= 0.0 {
            true => now.plus(by),
            false => now.minus(by),
        }
    }
}

/// Returns the kind of a fault rule, for the account.
fn kind(fault: &Fault) -> &'static str {
    match fault {
        Fault::Latency { .. } => "service: late",
        Fault::Refuse { status: 503, .. } => "service: 503",
        Fault::Refuse { .. } => "service: 500",
        Fault::Error { .. } => "service: error",
        Fault::Reset => "service: reset",
        Fault::AnswerLost => "service: answer lost",
        Fault::CutBody { .. } => "service: answer cut",
        Fault::PendingCopy(hold) if hold.failure.is_some() => "service: copy fails",
        Fault::PendingCopy(_) => "service: copy pending",
        Fault::EventDrop | Fault::EventDuplicate | Fault::EventDelay { .. } => "service: event",
    }
}

/// Generates fault rules of the service for some of `operations`.
pub fn rules(operations: &'static [&'static str]) -> BoxedStrategy<Vec<Rule>> {
    let fault = prop_oneof![
        (0u64..20).prop_map(|s| Fault::Refuse {
            status: 503,
            retry_after_s: Some(s)
        }),
        Just(Fault::Refuse {
            status: 503,
            retry_after_s: None
        }),
        Just(Fault::Refuse {
            status: 500,
            retry_after_s: None
        }),
        Just(Fault::Reset),
        (1u64..90_000).prop_map(|delay_ms| Fault::Latency { delay_ms }),
    ];
    let rule = (
        proptest::sample::select(operations),
        1u64..20,
        1u64..5,
        fault,
    );
    let rule = rule.prop_map(|(operation, nth, times, fault)| Rule {
        operation: operation.to_owned(),
        resource: String::new(),
        nth,
        times,
        fault,
    });
    // One rule per operation, so that each must fire whenever its request comes.
    let once = |mut rules: Vec<Rule>| {
        let mut known = BTreeSet::new();
        rules.retain(|rule| known.insert(rule.operation.clone()));
        rules
    };
    proptest::collection::vec(rule, 0..4).prop_map(once).boxed()
}

/// Runs a future on its own runtime whose clock advances only while nothing can run.
///
/// # Errors
/// A description, when the runtime cannot be created.
pub fn in_virtual_time<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(runtime.block_on(future))
}

/// Sleeps for this many seconds.
pub async fn sleep_s(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
