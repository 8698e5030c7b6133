//! The parts of `harness check crash` that run child processes without sockets, and their tables.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use indicatif::ProgressBar;

use super::errors;
use super::failpoints;
use super::images::{self, Plan};
use super::kills;
use super::mode::Mode;
use super::options::{Options, Part};
use crate::check::exit_code;

/// Operations of the workload in which every sync boundary is examined.
const OPERATIONS: u64 = 40;
/// Operations of a long workload, in which some boundaries are examined.
const OPERATIONS_LONG: u64 = 400;
/// One in so many boundaries of a long workload is examined.
const EVERY_LONG: u64 = 25;
/// Random images for each boundary.
const BY_CHANCE: u64 = 2;
/// Flaws that are printed for each part.
const SHOWN: usize = 10;

/// Kills without `--cases`.
const KILLS: u64 = 100;
/// Image workloads without `--cases`.
const WORKLOADS: u64 = 1;

/// Runs the selected part. Must not be called from within a runtime: each check has its own.
pub fn run(options: &Options) -> anyhow::Result<ExitCode> {
    if options.mode == Mode::Fast && options.part != Part::Kills {
        anyhow::bail!(
            "--mode fast needs --part rounds or --part kills: the other parts run in durable mode \
             only"
        );
    }
    let program = std::env::current_exe()?;
    let kept = tempfile::tempdir_in(images::scratch())?;
    // A kill leaves the page cache, so memory is as good as a disk. `--location` selects a real
    // disk.
    let dir = match &options.location {
        Some(dir) => dir.clone(),
        None => kept.path().join("crash"),
    };
    let seed = options.seed;
    let flaws = match options.part {
        Part::Rounds => anyhow::bail!("rounds need the binary `smalt` and are run elsewhere"),
        Part::Kills => {
            let count = options.cases.unwrap_or(KILLS);
            kills_part(&program, &dir, options, count)?
        }
        Part::Failpoints => failpoints_part(&program, &dir, seed)?,
        Part::Images => {
            let count = options.cases.unwrap_or(WORKLOADS);
            images_part(&program, &dir, seed, count)?
        }
        Part::Errors => errors_part(&program, &dir, seed)?,
    };
    say(&format!("{flaws} flaws, seed {seed}"));
    Ok(exit_code(flaws == 0))
}

fn say(text: &str) {
    println!("{text}");
}

fn show(flaws: impl Iterator<Item = String>) {
    for flaw in flaws.take(SHOWN) {
        say(&format!("       {flaw}"));
    }
}

fn kills_part(program: &Path, dir: &Path, options: &Options, count: u64) -> anyhow::Result<usize> {
    let bar = ProgressBar::new(count);
    let each = || bar.inc(1);
    let all = kills::kills(options.mode, program, dir, options.seed, count, &each)?;
    bar.finish_and_clear();
    say(&format!(
        "kills: {} children, {} operations acknowledged, {} in flight; looked at {} payloads, {} \
         blobs, {} messages, {} entities; slowest opening {} ms; {} flaws",
        all.kills,
        all.acknowledged,
        all.in_flight,
        all.payloads,
        all.blobs,
        all.messages,
        all.entities,
        all.open_ms_max,
        all.flaws.len()
    ));
    show(
        all.flaws
            .iter()
            .map(|(n, flaw)| format!("kill {n}: {flaw}")),
    );
    Ok(all.flaws.len() + usize::from(count > 0 && all.acknowledged == 0))
}

fn failpoints_part(program: &Path, dir: &Path, seed: u64) -> anyhow::Result<usize> {
    let bar = ProgressBar::new(failpoints::points() as u64);
    let all = failpoints::failpoints(program, dir, seed, &|| bar.inc(1))?;
    bar.finish_and_clear();
    say("failpoint                  deaths  acknowledged  in flight  flaws");
    for visits in &all {
        say(&format!(
            "{:<25}  {:>6}  {:>12}  {:>9}  {:>5}",
            visits.point,
            visits.deaths,
            visits.acknowledged,
            visits.in_flight,
            visits.flaws.len()
        ));
        show(visits.flaws.iter().map(ToString::to_string));
    }
    Ok(all.iter().map(|visits| visits.flaws.len()).sum())
}

/// Examines every boundary of a short workload, and some of a long one, for each seed.
fn images_part(program: &Path, dir: &Path, seed: u64, seeds: u64) -> anyhow::Result<usize> {
    let bar = ProgressBar::new_spinner();
    let mut flaws = 0;
    say("images        seed  operations  boundaries  images  in flight  recovered  flaws");
    for seed in seed..seed + seeds {
        // Seeds alternate between a flat and a hierarchical namespace.
        for (kind, seed, operations, every) in [
            ("exhaustive", seed, OPERATIONS, 1),
            ("sampled", seed + 1, OPERATIONS_LONG, EVERY_LONG),
        ] {
            let plan = Plan {
                seed,
                operations,
                by_chance: BY_CHANCE,
                every,
                forgotten: None,
            };
            let dir: PathBuf = dir.join(format!("{kind}-{seed}"));
            let recorded = images::record(program, &dir, &plan)?;
            let all = images::sweep(&recorded, &dir, &plan, &|| bar.inc(1))?;
            super::files::remove(&dir)?;
            say(&format!(
                "{kind:<12}  {seed:>4}  {:>10}  {:>10}  {:>6}  {:>9}  {:>9}  {:>5}",
                all.acknowledged,
                all.boundaries,
                all.images,
                all.in_flight,
                all.recovered,
                all.flaws.len()
            ));
            let line = |(at, kept, flaw): &(u64, String, _)| format!("{at}, {kept}: {flaw}");
            show(all.flaws.iter().map(line));
            flaws += all.flaws.len();
        }
    }
    bar.finish_and_clear();
    Ok(flaws)
}

fn errors_part(program: &Path, dir: &Path, seed: u64) -> anyhow::Result<usize> {
    let bar = ProgressBar::new(errors::kinds() as u64);
    let all = errors::errors(program, dir, seed, &|| bar.inc(1))?;
    bar.finish_and_clear();
    say(
        "failing calls                     children  acknowledged  refused  read-only  \
         cut off  not opened  flaws",
    );
    for errors in &all {
        say(&format!(
            "{:<32}  {:>8}  {:>12}  {:>7}  {:>9}  {:>7}  {:>10}  {:>5}",
            errors.case,
            errors.children,
            errors.acknowledged,
            errors.refused,
            errors.read_only,
            errors.cut_off,
            errors.not_opened,
            errors.flaws.len()
        ));
        show(
            errors
                .flaws
                .iter()
                .map(|(n, flaw)| format!("call {n}: {flaw}")),
        );
    }
    Ok(all.iter().map(|errors| errors.flaws.len()).sum())
}
