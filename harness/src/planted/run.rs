//! Runs every bug in its own process, a few at a time.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use smalt_planted::{Area, Bug, Detector, VARIABLE};
use tokio::process::Command;
use tokio::time::Instant;

use super::detect::{Check, Tests, Verdict};

/// Time limit for one check of one bug; the budgets of the checks end long before.
const CHECK_MAX: Duration = Duration::from_secs(600);

/// A task to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A bug, whose checks run until one fails.
    Bug(Area, &'static Bug),
    /// A check without a bug, which must not fail.
    Control(Detector),
    /// The check that must fail.
    Canary,
}

impl Task {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Task::Bug(_, bug) => &bug.id,
            Task::Control(detector) => detector.name(),
            Task::Canary => Check::Canary.name(),
        }
    }

    fn checks(self) -> Vec<Check> {
        match self {
            Task::Bug(_, bug) => bug.caught_by.iter().copied().map(Check::Detector).collect(),
            Task::Control(detector) => vec![Check::Detector(detector)],
            Task::Canary => vec![Check::Canary],
        }
    }

    fn bug(self) -> Option<&'static str> {
        match self {
            Task::Bug(_, bug) => Some(&bug.id),
            Task::Control(_) | Task::Canary => None,
        }
    }
}

/// The result of a task.
#[derive(Clone, Debug)]
pub struct Done {
    /// The task.
    pub task: Task,
    /// The last check that ran, with its result; or why it could not run.
    pub last: Result<(Check, Verdict), String>,
    /// Total time of the checks.
    pub took: Duration,
}

impl Done {
    /// Whether the result is the required one.
    pub fn is_good(&self) -> bool {
        let Ok((_, verdict)) = &self.last else {
            return false;
        };
        match self.task {
            Task::Bug(..) | Task::Canary => verdict.caught.is_some(),
            Task::Control(_) => verdict.caught.is_none(),
        }
    }
}

/// Starts the process of a check.
#[derive(Clone, Debug)]
pub struct Runner {
    /// Path of this program.
    pub program: PathBuf,
    /// Directory of the recorded traces.
    pub traces: PathBuf,
    /// Test binaries of packages.
    pub tests: Vec<Tests>,
}

impl Runner {
    /// Runs the tasks, `jobs` at a time, and returns the results in the order of the tasks.
    pub async fn run(&self, tasks: &[Task], jobs: usize, done: &dyn Fn(&Done)) -> Vec<Done> {
        let runs = tasks.iter().enumerate().map(|(place, task)| async move {
            let one = self.task(*task).await;
            done(&one);
            (place, one)
        });
        // Unordered, so that a slow task does not delay the start of later ones.
        let runs = stream::iter(runs).buffer_unordered(jobs.max(1));
        let mut all: Vec<(usize, Done)> = runs.collect().await;
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, one)| one).collect()
    }

    async fn task(&self, task: Task) -> Done {
        let begun = Instant::now();
        let mut last = Err("no check is listed for this bug".to_owned());
        for check in task.checks() {
            let verdict = self.check(check, task.bug()).await;
            last = verdict.map(|verdict| (check, verdict));
            let is_caught = |(_, verdict): &(Check, Verdict)| verdict.caught.is_some();
            if last.is_err() || last.as_ref().is_ok_and(is_caught) {
                break;
            }
        }
        Done {
            task,
            last,
            took: begun.elapsed(),
        }
    }

    async fn check(&self, check: Check, bug: Option<&str>) -> Result<Verdict, String> {
        let mut command = Command::new(&self.program);
        command
            .args(["planted", "--check", check.name(), "--json", "--traces"])
            .arg(&self.traces)
            .env(VARIABLE, bug.unwrap_or_default())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        for tests in &self.tests {
            let program = tests.program.display();
            command
                .arg("--tests")
                .arg(format!("{}={program}", tests.package));
        }
        let output = tokio::time::timeout(CHECK_MAX, command.output()).await;
        let output = output.map_err(|_| format!("{} did not end in time", check.name()))?;
        let output = output.map_err(|error| format!("{}: {error}", self.program.display()))?;
        let told = String::from_utf8_lossy(&output.stdout);
        let verdict = told.lines().last().map(serde_json::from_str);
        match verdict {
            Some(Ok(verdict)) => Ok(verdict),
            _ => {
                let told = String::from_utf8_lossy(&output.stderr);
                // Only the first line, because a backtrace may follow.
                let first = told.lines().next().unwrap_or_default();
                Err(format!("{}: {}: {first}", check.name(), output.status))
            }
        }
    }
}
