//! Instances of a listener as processes of this machine.

use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use smalt_worker::process::Sources;
use tokio::process::Command;
use tokio::time::Instant;

use super::Instances;
use crate::handler::process_group::ProcessGroup;

/// Units of `/proc/PID/stat` per second: `USER_HZ`, which is 100 on Linux.
const TICKS_PER_S: f64 = 100.0;

/// Processes of one command. Dropping this kills them.
pub struct Processes {
    command: Vec<String>,
    sources: Arc<dyn Sources + Send + Sync>,
    running: Vec<Running>,
    draining: Vec<ProcessGroup>,
}

struct Running {
    group: ProcessGroup,
    /// Processor time at the last look, in seconds, and when that was.
    used: (f64, Instant),
}

impl Processes {
    /// Creates no process yet. `command` is a program with its arguments; `sources` reads the
    /// processor time of processes.
    pub fn new(command: Vec<String>, sources: Arc<dyn Sources + Send + Sync>) -> Self {
        Processes {
            command,
            sources,
            running: Vec::new(),
            draining: Vec::new(),
        }
    }

    /// Stops all processes, and waits until they have finished what they had begun.
    pub async fn drain(mut self) {
        self.set(0).await;
        for mut group in self.draining.drain(..) {
            // An error means that it has ended already.
            let _ = group.child.wait().await;
            group.release();
        }
    }

    fn start(&self) -> std::io::Result<Running> {
        let [program, arguments @ ..] = &self.command[..] else {
            return Err(std::io::ErrorKind::InvalidInput.into());
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        Ok(Running {
            group: ProcessGroup::spawn(command)?,
            used: (0.0, Instant::now()),
        })
    }

    fn reap(&mut self) {
        let ended = |group: &mut ProcessGroup| group.child.try_wait().unwrap_or_default();
        for at in (0..self.running.len()).rev() {
            if let Some(status) = ended(&mut self.running[at].group) {
                tracing::warn!(op = "scale", %status, "an instance ended by itself");
                self.running.swap_remove(at).group.release();
            }
        }
        for at in (0..self.draining.len()).rev() {
            if ended(&mut self.draining[at]).is_some() {
                self.draining.swap_remove(at).release();
            }
        }
    }
}

#[async_trait]
impl Instances for Processes {
    /// A process counts as working at once.
    async fn look(&mut self) -> (u32, u32, f64) {
        self.reap();
        let now = Instant::now();
        let mut shares = 0.0;
        for running in &mut self.running {
            let pid = running.group.child.id().unwrap_or_default();
            let stat = self.sources.file(&format!("/proc/{pid}/stat"));
            let used_s = stat.ok().and_then(|stat| processor_s(&stat));
            let (before_s, since) = running.used;
            // Systems without such files do not say how busy a process is.
            let used_s = used_s.unwrap_or(before_s);
            let passed_s = now.duration_since(since).as_secs_f64();
            if passed_s > 0.0 {
                shares += (used_s - before_s) / passed_s;
            }
            running.used = (used_s, now);
        }
        let ready = self.running.len();
        let mean = shares / ready.max(1) as f64;
        (u32::try_from(ready).unwrap_or(u32::MAX), 0, mean)
    }

    async fn set(&mut self, wanted: u32) {
        self.reap();
        let wanted = wanted as usize;
        while self.running.len() < wanted {
            match self.start() {
                Ok(running) => self.running.push(running),
                Err(error) => {
                    let (program, reason) = (self.command.first(), error.to_string());
                    tracing::error!(op = "scale", program, reason, "cannot start an instance");
                    return;
                }
            }
        }
        for mut running in self.running.drain(wanted..) {
            running.group.terminate();
            self.draining.push(running.group);
        }
    }
}

/// Returns the processor time in `/proc/PID/stat`, with that of ended children.
fn processor_s(stat: &str) -> Option<f64> {
    // The second field is the name in parentheses, which may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter();
    let ticks: Option<Vec<f64>> = ticks.map(|field| field.parse().ok()).collect();
    Some(ticks?.iter().sum::<f64>() / TICKS_PER_S)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A source where each look finds another second of processor time.
    #[derive(Default)]
    struct Busy(std::sync::atomic::AtomicU64);

    impl Sources for Busy {
        fn variable(&self, _: &str) -> Option<String> {
            None
        }

        fn file(&self, path: &str) -> std::io::Result<String> {
            assert!(path.starts_with("/proc/") && path.ends_with("/stat"));
            let ticks = 100 * self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(format!("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 {ticks} 0 0 0 20"))
        }
    }

    fn processes(command: &[&str]) -> Processes {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        Processes::new(command, Arc::<Busy>::default())
    }

    /// L12: processes are started and stopped; one that ends by itself is replaced.
    #[tokio::test]
    async fn l12_processes_are_started_stopped_and_replaced() {
        let mut fleet = processes(&["sleep", "600"]);
        for wanted in [3, 1, 2] {
            fleet.set(wanted).await;
            assert_eq!(fleet.look().await.0, wanted);
        }
        fleet.running[0].group.child.kill().await.unwrap();
        assert_eq!(fleet.look().await.0, 1);
        fleet.set(2).await;
        assert_eq!(fleet.look().await.0, 2);
        fleet.drain().await;
    }

    #[tokio::test(start_paused = true)]
    async fn l12_busy_processes_are_seen() {
        let mut fleet = processes(&["sleep", "600"]);
        fleet.set(1).await;
        fleet.look().await;
        tokio::time::advance(std::time::Duration::from_secs(2)).await;
        assert_eq!(fleet.look().await, (1, 0, 0.5));
    }

    #[tokio::test]
    async fn missing_program_starts_nothing() {
        for command in [&["/no/such/program"][..], &[]] {
            let mut fleet = processes(command);
            fleet.set(2).await;
            assert_eq!(fleet.look().await, (0, 0, 0.0));
        }
    }

    #[test]
    fn processor_time_is_parsed() {
        let stat = "42 (sh) S 1 42 42 0 -1 4194304 80 0 0 0 150 50 25 75 20 0 1";
        assert_eq!(processor_s(stat), Some(3.0));
        for broken in [
            "",
            "42 sh S",
            "42 (sh) S 1 2",
            "1 (a) S 1 2 3 4 5 6 7 8 9 10 x 0 0 0",
        ] {
            assert_eq!(processor_s(broken), None, "{broken}");
        }
    }
}
