//! The sweeper as a library: create it with accounts, then run it, sweep once, or plan.

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

/// One worker. Any number of workers, in any number of processes, may share a state document.
pub struct Sweeper {
    pub(crate) config: SweeperConfig,
    pub(crate) accounts: Accounts,
    seed: u64,
    wall_clock: Option<WallClock>,
    policy: PolicyCell,
    monitor: Monitor,
}

/// The result of a run, with a report even if the run ended early.
#[derive(Debug)]
pub struct Finished {
    /// The work done.
    pub report: Report,
    /// Why the run ended early, if it did.
    pub error: Option<SweepError>,
}

impl Finished {
    /// Returns the exit code of the error, or else of the report.
    pub fn exit_code(&self) -> u8 {
        match &self.error {
            Some(error) => error.exit_code(),
            None => self.report.exit_code(),
        }
    }
}

impl Sweeper {
    /// Creates a worker with these accounts. All its random choices derive from `seed`.
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

    /// Sets this machine's clock, which is used only to measure its skew.
    #[must_use]
    pub fn with_wall_clock(mut self, clock: WallClock) -> Self {
        self.wall_clock = Some(clock);
        self
    }

    /// Returns a view of this worker.
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Rejects a configuration that names a missing container if no state document exists yet: the
    /// name is probably mistyped, and a worker would write it into a new document. A failure of
    /// storage is left to the worker, which retries.
    ///
    /// # Errors
    /// [`SweepError::ContainerMissing`].
    pub async fn check_new_state(&self) -> Result<(), SweepError> {
        let core = self.core(Stop::default());
        match store::read(&core, self.state_account()?.as_ref()).await {
            Err(SweepError::Storage(error)) if error.kind == ErrorKind::NotFound => {
                store::swept_exist(&core).await
            }
            _ => Ok(()),
        }
    }

    /// Replaces the policy, which decides what is removed, when and where to, from the next page
    /// on. All other settings stay as they were at the start.
    ///
    /// # Errors
    /// [`SweepError::Config`] for an invalid policy; the old one stays.
    pub fn reload(&self, policy: Policy) -> Result<(), SweepError> {
        let config = SweeperConfig {
            policy: policy.clone(),
            ..self.config.clone()
        };
        config.check().map_err(SweepError::Config)?;
        *lock(&self.policy) = Arc::new(policy);
        Ok(())
    }

    /// Sweeps cycle after cycle until `shutdown` completes; then finishes the blobs in progress,
    /// gives back the rest of its page and returns. Dropping the future instead acts like a crash:
    /// it is safe, and other workers redo the page.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()>) -> Finished {
        self.drive(Goal::Run, shutdown).await
    }

    /// Sweeps the next cycle at once, and returns when any worker of the fleet has completed it.
    pub async fn once(&self) -> Finished {
        self.once_until(std::future::pending()).await
    }

    /// Sweeps as [`Sweeper::once`] does, at most until `shutdown` completes.
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
                    tracing::info!("stopping; finishing the blobs in progress");
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

    /// Returns the state document, or the one that would be created if it does not exist.
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

    /// Writes a new state document from the configured containers. Returns `false` if one exists
    /// and `replace` is not set.
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
