//! The listener processes: started, killed at random, started again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use tokio::process::Command;

use super::ledger::Ledger;
use crate::servers::ServerError;
use crate::servers::process::Process;

/// Where a listener looks for the key of its account.
const KEY_VARIABLE: &str = "LISTENER_ACCOUNT_KEY";

/// How the processes are started, and how often one dies.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The binary `smalt-listener`.
    pub binary: PathBuf,
    /// What every process is told.
    pub arguments: Vec<String>,
    /// The account's key, for their environment.
    pub key: String,
    /// Processes at once.
    pub processes: usize,
    /// Mean time between two deaths; nobody is killed without one.
    pub kill_every: Option<Duration>,
    /// Decides who dies when.
    pub seed: u64,
}

/// Processes that run. Dropped, they are killed.
pub struct Herd {
    plan: Plan,
    running: Vec<Process>,
    random: ChaCha8Rng,
    ledger: Arc<Ledger>,
    /// Processes killed so far.
    pub killed: u64,
    /// Processes started so far.
    started: u64,
}

impl Herd {
    /// Starts them.
    ///
    /// # Errors
    /// When the binary cannot be started.
    pub fn start(plan: Plan, ledger: Arc<Ledger>) -> Result<Self, ServerError> {
        let mut herd = Herd {
            random: ChaCha8Rng::seed_from_u64(plan.seed),
            running: Vec::with_capacity(plan.processes),
            ledger,
            killed: 0,
            started: 0,
            plan,
        };
        for _ in 0..herd.plan.processes {
            let process = herd.another()?;
            herd.running.push(process);
        }
        Ok(herd)
    }

    fn another(&mut self) -> Result<Process, ServerError> {
        self.started += 1;
        let mut arguments = self.plan.arguments.clone();
        arguments.extend(["--worker-id".to_owned(), format!("fleet-{}", self.started)]);
        arguments.extend(["--seed".to_owned(), self.random.next_u64().to_string()]);
        let mut command = Command::new(&self.plan.binary);
        command.env(KEY_VARIABLE, &self.plan.key);
        let mut process = Process::start_in(command, &self.plan.binary, &arguments)?;
        process.ignore_output();
        Ok(process)
    }

    /// Time until the next death: half to one and a half times the mean.
    pub fn next_death(&mut self) -> Duration {
        match self.plan.kill_every {
            // Long enough for any run.
            None => Duration::from_secs(24 * 60 * 60),
            Some(mean) => {
                mean.mul_f64(0.5 + f64::from(self.random.next_u32()) / f64::from(u32::MAX))
            }
        }
    }

    /// Kills one and starts another in its place.
    ///
    /// # Errors
    /// When one cannot be killed or started.
    pub async fn kill_one(&mut self) -> Result<(), ServerError> {
        let at = self.random.next_u64() % (self.running.len().max(1) as u64);
        let at = usize::try_from(at).unwrap_or(0);
        let mut next = self.another()?;
        if let Some(place) = self.running.get_mut(at) {
            std::mem::swap(place, &mut next);
        }
        next.kill().await?;
        self.killed += 1;
        Ok(())
    }

    /// Notes those that ended by themselves, and starts others in their place.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn look_after(&mut self) -> Result<(), ServerError> {
        for at in 0..self.running.len() {
            if !self.running[at].is_running() {
                self.ledger.note_ended();
                self.running[at] = self.another()?;
            }
        }
        Ok(())
    }

    /// Kills all.
    ///
    /// # Errors
    /// When one cannot be killed.
    pub async fn end(mut self) -> Result<(), ServerError> {
        self.look_after()?;
        for process in self.running {
            process.kill().await?;
        }
        Ok(())
    }
}
