//! A child that is killed, and the check of its store.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::child::ChildOptions;
use super::events::{self, Told};
use super::examine::{Examined, Scene, examine};
use super::files;
use super::mode::Mode;
use super::model::{Model, Unique};
use super::property::{Flaw, Property};

/// Time after which a child that should have ended counts as hanging.
const HANG: Duration = Duration::from_secs(60);
/// Interval at which a child is checked for its end.
const LOOK: Duration = Duration::from_micros(500);

/// A growing store on which children work and die, one after the other.
pub struct Stage {
    program: PathBuf,
    /// Directory of store, events and models.
    dir: PathBuf,
    seed: u64,
    round: u64,
    connections: usize,
    mode: Mode,
    models: Vec<Model>,
    unique: Unique,
}

/// Results of one child.
#[derive(Debug)]
pub struct Death {
    /// Summary of its events.
    pub told: Told,
    /// Counts of the check of its store.
    pub examined: Examined,
    /// Flaws, including those that the child found.
    pub flaws: Vec<Flaw>,
    /// Number of operations in flight.
    pub in_flight: u64,
    /// Exit status; `None` when it hung.
    pub status: Option<ExitStatus>,
    /// Its output on stderr.
    pub said: String,
}

/// How a child ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// It is killed at the next check after it has logged this many lines.
    KilledAfter(usize),
    /// It ends by itself.
    OfItself,
}

impl Stage {
    /// Creates an empty store below `dir`, with children of this program.
    pub fn new(mode: Mode, program: &Path, dir: &Path, seed: u64, connections: usize) -> Self {
        Stage {
            mode,
            program: program.to_owned(),
            dir: dir.to_owned(),
            seed,
            round: 0,
            connections,
            models: vec![Model::default(); connections],
            unique: Unique::default(),
        }
    }

    /// Returns the directory of the store.
    pub fn location(&self) -> PathBuf {
        self.dir.join("store")
    }

    /// Returns the options of the next child.
    pub fn next_child(&mut self) -> std::io::Result<ChildOptions> {
        self.round += 1;
        let events = self.dir.join("events");
        files::remove(&events)?;
        let models = self.dir.join("models");
        files::write(&models, &serde_json::to_vec(&self.models)?)?;
        Ok(ChildOptions {
            location: self.location(),
            events,
            models: Some(models),
            seed: self.seed,
            round: self.round,
            connections: self.connections,
            maintain_every: 8,
            mode: self.mode,
            ..ChildOptions::default()
        })
    }

    /// Runs a child to its end and examines its store.
    pub fn die(
        &mut self,
        options: &ChildOptions,
        environment: &[(&str, String)],
        end: End,
    ) -> std::io::Result<Death> {
        let (status, said) = run(&self.program, options, environment, end)?;
        let text = files::read(&options.events)?;
        let events = events::parse(&String::from_utf8_lossy(&text));
        let mut told = events::replay(&events, &mut self.models, &self.unique);
        let mut flaws = std::mem::take(&mut told.flaws);
        if status.is_none() {
            flaws.push(Flaw::new(Property::C6, "the child hung"));
        }
        let in_flight = self.models.iter().filter(|model| model.pending.is_some());
        let in_flight = in_flight.count() as u64;
        let scene = Scene {
            dir: &options.location,
            seed: self.seed,
            round: self.round,
            unique: &self.unique,
            half_reset: told.reset == Some(false),
            mode: self.mode,
        };
        let examined = examine(&scene, &mut self.models, &mut flaws);
        Ok(Death {
            told,
            examined,
            flaws,
            in_flight,
            status,
            said,
        })
    }
}

/// Runs a child. Returns its exit status (`None` when it hung and was killed) and its output.
pub fn run(
    program: &Path,
    options: &ChildOptions,
    environment: &[(&str, String)],
    end: End,
) -> std::io::Result<(Option<ExitStatus>, String)> {
    let said = options.events.with_extension("stderr");
    files::remove(&said)?;
    let mut child = Command::new(program)
        .arg("crash-child")
        .arg(serde_json::to_string(options)?)
        .env("RUST_BACKTRACE", "0")
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(files::append(&said)?)
        .spawn()?;
    let begun = now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if let End::KilledAfter(lines) = end {
            let told = files::read(&options.events)?;
            if told.iter().filter(|byte| **byte == b'\n').count() > lines {
                child.kill()?;
                break Some(child.wait()?);
            }
        }
        if begun.elapsed() > HANG {
            child.kill()?;
            child.wait()?;
            break None;
        }
        pause();
    };
    let said = String::from_utf8_lossy(&files::read(&said)?).into_owned();
    Ok((status, said))
}

#[expect(clippy::disallowed_methods, reason = "the child lives in real time")]
fn now() -> Instant {
    Instant::now()
}

#[expect(
    clippy::disallowed_methods,
    reason = "std has no other way to wait for a process and a moment at once"
)]
fn pause() {
    std::thread::sleep(LOOK);
}
