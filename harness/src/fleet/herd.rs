//! The processes of a fleet: started, killed at random, started again.

use std::path::PathBuf;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use tokio::process::Command;

use crate::servers::ServerError;
use crate::servers::process::Process;

/// How the processes are started, and how often one is killed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The worker's binary.
    pub binary: PathBuf,
    /// Arguments of every process.
    pub arguments: Vec<String>,
    /// Secrets for the environment of every process: name and value.
    pub environment: Vec<(&'static str, String)>,
    /// Number of concurrent processes.
    pub processes: usize,
    /// Mean time between two kills; `None` kills no process.
    pub kill_every: Option<Duration>,
    /// Seed that determines which process is killed when.
    pub seed: u64,
}

/// Running processes, which are killed when this is dropped.
pub struct Herd {
    plan: Plan,
    running: Vec<Process>,
    random: ChaCha8Rng,
    /// Number of processes killed so far.
    pub killed: u64,
    /// Number of processes started so far.
    started: u64,
}

impl Herd {
    /// Starts the processes.
    pub fn start(plan: Plan) -> Result<Self, ServerError> {
        let mut herd = Herd {
            random: ChaCha8Rng::seed_from_u64(plan.seed),
            running: Vec::with_capacity(plan.processes),
            killed: 0,
            started: 0,
            plan,
        };
        herd.fill_up()?;
        Ok(herd)
    }

    fn another(&mut self) -> Result<Process, ServerError> {
        self.started += 1;
        let mut arguments = self.plan.arguments.clone();
        arguments.extend(["--worker-id".to_owned(), format!("fleet-{}", self.started)]);
        arguments.extend(["--seed".to_owned(), self.random.next_u32().to_string()]);
        let mut command = Command::new(&self.plan.binary);
        command.envs(self.plan.environment.iter().cloned());
        let mut process = Process::start(command, &self.plan.binary, &arguments)?;
        process.keep_output();
        Ok(process)
    }

    /// Returns the time until the next kill: half to one and a half times the mean.
    pub fn next_death(&mut self) -> Duration {
        match self.plan.kill_every {
            // Longer than any run.
            None => Duration::from_secs(24 * 60 * 60),
            Some(mean) => {
                mean.mul_f64(0.5 + f64::from(self.random.next_u32()) / f64::from(u32::MAX))
            }
        }
    }

    /// Kills one process and starts another in its place.
    pub async fn kill_one(&mut self) -> Result<(), ServerError> {
        if self.running.is_empty() {
            return Ok(());
        }
        let at = self.random.next_u64() % (self.running.len() as u64);
        let at = usize::try_from(at).unwrap_or(0);
        let next = self.another()?;
        let killed = std::mem::replace(&mut self.running[at], next);
        killed.kill().await?;
        self.killed += 1;
        Ok(())
    }

    /// Returns the processes that run or have ended since the last [`Herd::take_ended`].
    pub fn running(&self) -> &[Process] {
        &self.running
    }

    /// Removes and returns the processes that ended by themselves.
    pub fn take_ended(&mut self) -> Vec<Process> {
        let mut ended = Vec::new();
        for at in (0..self.running.len()).rev() {
            if !self.running[at].is_running() {
                ended.push(self.running.swap_remove(at));
            }
        }
        ended
    }

    /// Starts the missing processes.
    pub fn fill_up(&mut self) -> Result<(), ServerError> {
        while self.running.len() < self.plan.processes {
            let process = self.another()?;
            self.running.push(process);
        }
        Ok(())
    }

    /// Kills all processes that still run.
    pub async fn end(self) -> Result<(), ServerError> {
        for process in self.running {
            process.kill().await?;
        }
        Ok(())
    }
}
