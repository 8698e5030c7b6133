//! The sweeper as a library: construct it with accounts, then run it, sweep once, or only plan.

use std::future::Future;
use std::sync::{Arc, Mutex};

use smalt_sleeve::port::{ErrorKind, PortError, Storage};

use crate::accounts::Accounts;
use crate::calls::lock;
use crate::claim::Goal;
use crate::config::SweeperConfig;
use crate::cycle;
use crate::decide::Policy;
use crate::error::SweepError;
use crate::monitor::{Monitor, Phase};
use crate::report::Report;
use crate::shared::{Core, PolicyCell, Stop, WallClock};
use crate::state::Document;
use crate::store;

/// One worker. Any number of them may share a state document, in one process or in a thousand.
pub struct Sweeper {
    pub(crate) config: SweeperConfig,
    pub(crate) accounts: Accounts,
    seed: u64,
    wall_clock: Option<WallClock>,
    policy: PolicyCell,
    monitor: Monitor,
}

/// How a run ended. The report is there even when the run ended early.
#[derive(Debug)]
pub struct Finished {
    /// What was done.
    pub report: Report,
    /// Why it ended early, if it did.
    pub error: Option<SweepError>,
}

impl Finished {
    /// The exit code: the error's, else the report's.
    pub fn exit_code(&self) -> u8 {
        match &self.error {
            Some(error) => error.exit_code(),
            None => self.report.exit_code(),
        }
    }
}

impl Sweeper {
    /// A worker with these accounts. All that is random about it comes from `seed`.
    pub fn new(config: SweeperConfig, accounts: Accounts, seed: u64) -> Result<Self, SweepError> {
        config.check().map_err(SweepError::Config)?;
        let needed = [Some(&config.state_account), config.dead.account.as_ref()];
        for name in needed.into_iter().flatten() {
            if accounts.get(name).is_none() {
                return Err(SweepError::Config(format!(
                    "no account `{name}` is configured"
                )));
            }
        }
        Ok(Sweeper {
            policy: Arc::new(Mutex::new(Arc::new(config.policy.clone()))),
            monitor: Monitor::default(),
            config,
            accounts,
            seed,
            wall_clock: None,
        })
    }

    /// Gives the worker this machine's clock, for judging its skew and for nothing else.
    #[must_use]
    pub fn with_wall_clock(mut self, clock: WallClock) -> Self {
        self.wall_clock = Some(clock);
        self
    }

    /// A window on this worker.
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Replaces the rules, from the next page on: what may go, when and where to. All else of a
    /// configuration stays as it was at the start.
    ///
    /// # Errors
    /// [`SweepError::Config`] for rules that cannot work; the old ones stay.
    pub fn reload(&self, policy: Policy) -> Result<(), SweepError> {
        let config = SweeperConfig {
            policy: policy.clone(),
            ..self.config.clone()
        };
        config.check().map_err(SweepError::Config)?;
        *lock(&self.policy) = Arc::new(policy);
        Ok(())
    }

    /// Sweeps cycle after cycle until `shutdown` completes; then finishes the blobs in hand, gives
    /// the rest of its page back and returns. Dropping the future instead is a crash: safe, and
    /// made good by the others.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()>) -> Finished {
        self.drive(Goal::Run, shutdown).await
    }

    /// Sweeps the cycle that is due next, at once, and returns when it is complete, whoever of the
    /// fleet completes it.
    pub async fn once(&self) -> Finished {
        self.once_until(std::future::pending()).await
    }

    /// As [`Sweeper::once`], until `shutdown` completes.
    pub async fn once_until(&self, shutdown: impl Future<Output = ()>) -> Finished {
        self.drive(Goal::Once(None), shutdown).await
    }

    async fn drive(&self, goal: Goal, shutdown: impl Future<Output = ()>) -> Finished {
        let stop = Stop::default();
        let core = Arc::new(self.core(stop.clone()));
        self.monitor.watch(&core);
        let result = {
            let mut work = std::pin::pin!(cycle::drive(&core, goal));
            tokio::select! {
                biased;
                result = &mut work => result,
                () = shutdown => {
                    stop.set();
                    tracing::info!("stopping: finishing the blobs in hand");
                    match tokio::time::timeout(self.config.stop_grace, work).await {
                        Ok(result) => result,
                        Err(_) => Err(SweepError::GraceExceeded),
                    }
                }
            }
        };
        lock(&core.gauges).enter(Phase::Stopped);
        let report = lock(&core.report).clone();
        Finished {
            report,
            error: result.err(),
        }
    }

    /// The state document, or the one that would be made when there is none.
    pub(crate) async fn document(&self, core: &Core) -> Result<Document, SweepError> {
        match store::read(core, self.state_account()?.as_ref()).await {
            Ok((document, _)) => Ok(document),
            Err(SweepError::Storage(PortError {
                kind: ErrorKind::NotFound,
                ..
            })) if !self.config.containers.is_empty() => Ok(store::initial(core)),
            Err(error) => Err(error),
        }
    }

    /// Reads the state document.
    pub async fn state(&self) -> Result<Document, SweepError> {
        let core = self.core(Stop::default());
        Ok(store::read(&core, self.state_account()?.as_ref()).await?.0)
    }

    /// Writes a new state document from the configuration's containers. `false` when one is there
    /// already and `replace` is not set.
    pub async fn init_state(&self, replace: bool) -> Result<bool, SweepError> {
        let core = self.core(Stop::default());
        store::write_new(&core, self.state_account()?.as_ref(), replace).await
    }

    pub(crate) fn core(&self, stop: Stop) -> Core {
        let clock = self.wall_clock.clone();
        let policy = Policy::clone(&lock(&self.policy));
        Core::new(
            SweeperConfig {
                policy,
                ..self.config.clone()
            },
            self.accounts.clone(),
            self.seed,
            clock,
            stop,
            Arc::clone(&self.policy),
        )
    }

    pub(crate) fn state_account(&self) -> Result<&Arc<dyn Storage>, SweepError> {
        let name = &self.config.state_account;
        let missing = || SweepError::Config(format!("no account `{name}` is configured"));
        self.accounts.get(name).ok_or_else(missing)
    }
}
