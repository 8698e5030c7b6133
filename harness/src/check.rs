//! Shared by the drivers of `harness check`: options, the runner of seeds, and saving a failing
//! case.
//!
//! All drivers have the same options: `--seed` of the first case, `--cases` for the number of
//! consecutive seeds, `--jobs` for the number of cases at a time, `--save` for the directory of
//! failing cases.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Options that select the cases, and the directory for failing ones.
#[derive(Clone, Debug, clap::Args)]
pub struct Cases {
    /// Seed of the first case; each further case takes the next seed.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Number of cases; each driver has its own default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub cases: Option<u64>,
    /// Number of cases that run at a time, each on its own thread (1 to 64).
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=64))]
    pub jobs: u64,
    /// Directory for failing cases, one file each.
    #[arg(long, default_value = SAVE, value_name = "DIR")]
    pub save: PathBuf,
}

const SAVE: &str = "target/check";

impl Default for Cases {
    fn default() -> Self {
        Cases {
            seed: 0,
            cases: None,
            jobs: 1,
            save: SAVE.into(),
        }
    }
}

impl Cases {
    /// Returns the seeds of all cases; `default` is the count when `--cases` is not given.
    pub fn seeds(&self, default: u64) -> Seeds {
        Seeds {
            first: self.seed,
            count: self.cases.unwrap_or(default),
            jobs: self.jobs,
        }
    }

    /// Returns the path of the file for a failing case.
    pub fn file(&self, driver: &str, seed: u64) -> PathBuf {
        self.save.join(format!("{driver}-{seed}.ndjson"))
    }
}

/// A range of consecutive seeds.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The first seed.
    pub first: u64,
    /// Number of seeds.
    pub count: u64,
    /// Number of cases that run at a time.
    pub jobs: u64,
}

impl Seeds {
    /// Runs a case for every seed and adds up the results. `start` creates the state that the cases
    /// of one thread share. A failure stops the run once the cases in progress have ended. A case
    /// that hangs ends the program, which names its seed.
    pub fn each<C, T: Default + Send, F: Send>(
        &self,
        start: impl Fn() -> C + Sync,
        one: impl Fn(&C, u64) -> Result<T, F> + Sync,
        add: impl Fn(&mut T, T) + Sync,
    ) -> Result<T, (u64, F)> {
        let (next, running) = (AtomicU64::new(0), Running::default());
        let sum: Mutex<(T, Option<(u64, F)>)> = Mutex::default();
        let job = || {
            let shared = start();
            loop {
                let at = next.fetch_add(1, Ordering::SeqCst);
                if at >= self.count {
                    return;
                }
                let seed = self.first.saturating_add(at);
                running.begin(seed);
                let came = one(&shared, seed);
                running.end(seed);
                let (sum, failed) = &mut *sum.lock().unwrap_or_else(PoisonError::into_inner);
                match came {
                    Ok(part) => add(sum, part),
                    Err(failure) => {
                        next.store(self.count, Ordering::SeqCst);
                        if failed.as_ref().is_none_or(|(known, _)| seed < *known) {
                            *failed = Some((seed, failure));
                        }
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            // The watch ends when this side of the channel goes, even by a panic.
            let (_open, is_over) = mpsc::channel();
            scope.spawn(|| running.watch(is_over));
            let jobs: Vec<_> = (1..self.jobs).map(|_| scope.spawn(job)).collect();
            job();
            for job in jobs {
                job.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
        });
        match sum.into_inner().unwrap_or_else(PoisonError::into_inner) {
            (sum, None) => Ok(sum),
            (_, Some(failed)) => Err(failed),
        }
    }
}

/// Seconds after which a case counts as hanging. The slowest one takes a few.
const CASE_MAX_S: u32 = 300;

/// The running cases by seed, each with the seconds that it has taken.
#[derive(Default)]
struct Running(Mutex<BTreeMap<u64, u32>>);

impl Running {
    fn begin(&self, seed: u64) {
        self.lock().insert(seed, 0);
    }

    fn end(&self, seed: u64) {
        self.lock().remove(&seed);
    }

    /// Ends the program when a case takes too long.
    fn watch(&self, is_over: Receiver<()>) {
        while is_over.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
            if let Some(seed) = hanging(&mut self.lock()) {
                eprintln!("error: the case of seed {seed} still runs after {CASE_MAX_S} s");
                std::process::exit(1);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a second to each case. Returns one that takes too long.
fn hanging(cases: &mut BTreeMap<u64, u32>) -> Option<u64> {
    cases.values_mut().for_each(|taken_s| *taken_s += 1);
    let late = |(_, taken_s): &(&u64, &u32)| **taken_s > CASE_MAX_S;
    cases.iter().find(late).map(|(seed, _)| *seed)
}

/// Returns the exit code of a command that checks something.
pub fn exit_code(holds: bool) -> ExitCode {
    ExitCode::from(u8::from(!holds))
}

/// Writes a failing case to a file, replacing its content.
#[expect(
    clippy::disallowed_methods,
    reason = "a failing case is written to the directory given on the command line"
)]
pub fn save(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_seeds_run_once_and_the_lowest_failure_is_returned() {
        for jobs in [1, 3] {
            let seeds = Seeds {
                first: 10,
                count: 20,
                jobs,
            };
            let sum = seeds.each(
                || 2,
                |by, seed| Ok::<_, ()>(by * seed),
                |sum, part| *sum += part,
            );
            assert_eq!(sum, Ok(2 * (10..30).sum::<u64>()));
            let odd = |(): &(), seed: u64| {
                if seed.is_multiple_of(2) {
                    Ok(1)
                } else {
                    Err("odd")
                }
            };
            let failed = seeds.each(|| (), odd, |sum, part| *sum += part);
            assert!(matches!(failed, Err((11 | 13, "odd"))), "{failed:?}");
        }
    }

    #[test]
    fn hanging_case_is_named() {
        let mut cases = [(7, CASE_MAX_S - 1), (9, 0)].into();
        assert_eq!(hanging(&mut cases), None);
        assert_eq!(hanging(&mut cases), Some(7));
        assert_eq!(cases[&9], 2);
    }
}
