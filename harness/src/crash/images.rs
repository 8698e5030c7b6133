//! Power failures at every sync boundary of a workload: what they can leave is opened and checked.
//!
//! A child works under the shim ([`super::shim`]), whose journal contains the child's events as
//! well, so that at every position it is known what had been acknowledged.

use std::path::{Path, PathBuf};

use super::content::stream;
use super::events;
use super::examine::{Scene, examine};
use super::image::{Disk, Image, Survival};
use super::journal::{self, Change, Record};
use super::kill::{End, run};
use super::mode::Mode;
use super::model::{Model, Unique};
use super::property::Flaw;
use super::{ChildOptions, files, shim};

/// File of the child's events in the watched directory.
const EVENTS: &str = "events";
/// Directory of the store in the watched directory.
const STORE: &str = "store";
/// Round of the second child, which determines the time of the check.
const ROUND: u64 = 2;
/// Random stream that determines what survives.
const LUCK: u64 = u64::MAX - 2;

/// Plan of the images.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Seed of the child's operations and of what survives by chance.
    pub seed: u64,
    /// Operations of the child.
    pub operations: u64,
    /// Random images for each boundary, in addition to those by rule.
    pub by_chance: u64,
    /// One in so many boundaries is examined.
    pub every: u64,
    /// Suffix of paths whose syncs are ignored: simulates a product that forgot a sync.
    pub forgotten: Option<&'static str>,
}

impl Plan {
    fn forgets(&self, path: &Path) -> bool {
        self.forgotten.is_some_and(|ending| path.ends_with(ending))
    }
}

/// Results of the images.
#[derive(Debug, Default)]
pub struct Images {
    /// Number of sync boundaries with unsynced changes.
    pub boundaries: u64,
    /// Number of images that were opened.
    pub images: u64,
    /// Number of operations that the child did.
    pub acknowledged: u64,
    /// Number of payloads that were read in images.
    pub payloads: u64,
    /// Number of images with an unanswered operation.
    pub in_flight: u64,
    /// Number of images whose engine was damaged and recovered.
    pub recovered: u64,
    /// Number of the boundary, what survived, and the flaw.
    pub flaws: Vec<(u64, String, Flaw)>,
}

/// A journal with everything that is needed to interpret it.
pub struct Recorded(Vec<Record>);

/// Runs two children under the shim, the second one on the store that the first left open. Returns
/// their journal.
pub fn record(program: &Path, dir: &Path, plan: &Plan) -> anyhow::Result<Recorded> {
    let watched = dir.join("watched");
    files::make_dir(&watched)?;
    let watched = std::path::absolute(&watched)?;
    let journal = dir.join("journal");
    let environment = shim::environment(&watched, Some(&journal), None)?;
    let first = plan.operations * 3 / 4;
    for (round, operations) in [(1, first), (ROUND, plan.operations - first)] {
        let options = ChildOptions {
            location: watched.join(STORE),
            events: watched.join(EVENTS),
            models: Some(models_so_far(&watched.join(EVENTS), dir)?),
            seed: plan.seed,
            round,
            connections: 1,
            operations: Some(operations),
            maintain_every: 8,
            close: round == ROUND,
            ..ChildOptions::default()
        };
        let (status, said) = run(program, &options, &environment, End::OfItself)?;
        if !status.is_some_and(|status| status.success()) {
            anyhow::bail!("the child under the shim ended with {status:?}: {said}");
        }
    }
    let records = journal::parse(&files::read(&journal)?).map_err(anyhow::Error::msg)?;
    Ok(Recorded(records))
}

/// Writes a file with what the children so far expect of their store.
fn models_so_far(events: &Path, dir: &Path) -> std::io::Result<PathBuf> {
    let text = files::read(events)?;
    let events = events::parse(&String::from_utf8_lossy(&text));
    let mut models = [Model::default()];
    events::replay(&events, &mut models, &Unique::default());
    let path = dir.join("models");
    files::write(&path, &serde_json::to_vec(&models)?)?;
    Ok(path)
}

/// Builds the images of a journal below `dir` and examines each.
pub fn sweep(
    recorded: &Recorded,
    dir: &Path,
    plan: &Plan,
    each: &dyn Fn(),
) -> std::io::Result<Images> {
    let mut all = Images::default();
    let mut disk = Disk::default();
    let mut told = Vec::new();
    for record in &recorded.0 {
        if record.path == Path::new(EVENTS) {
            if let Change::Write(_, bytes) = &record.change {
                told.extend_from_slice(bytes);
            }
            continue;
        }
        if record.change == Change::Sync && plan.forgets(&record.path) {
            continue;
        }
        // What is lost before a sync shows whether it is necessary; after it there is only less to
        // lose.
        if record.change == Change::Sync && disk.matters(&record.path) {
            all.boundaries += 1;
            if all.boundaries.is_multiple_of(plan.every) {
                boundary(&disk, &told, dir, plan, &mut all)?;
                each();
            }
        }
        disk.apply(record);
    }
    boundary(&disk, &told, dir, plan, &mut all)?;
    let events = events::parse(&String::from_utf8_lossy(&told));
    let mut models = [Model::default()];
    let told = events::replay(&events, &mut models, &Unique::default());
    all.acknowledged = told.acknowledged;
    Ok(all)
}

fn boundary(
    disk: &Disk,
    told: &[u8],
    dir: &Path,
    plan: &Plan,
    all: &mut Images,
) -> std::io::Result<()> {
    let number = all.boundaries;
    let mut kinds = vec![
        Survival::Nothing,
        Survival::Everything,
        Survival::NoGrowth,
        Survival::Latest,
    ];
    for luck in 0..plan.by_chance {
        let random = stream(plan.seed ^ (luck << 32), number, LUCK);
        kinds.push(Survival::Chance(Box::new(random)));
    }
    let events = events::parse(&String::from_utf8_lossy(told));
    let place = dir.join("image");
    for mut survival in kinds {
        let name = match &survival {
            Survival::Chance(_) => format!("chance {}", all.images),
            other => format!("{other:?}"),
        };
        let image = disk.image(&mut survival);
        files::remove(&place)?;
        write(&image, &place)?;
        let (mut models, unique) = ([Model::default()], Unique::default());
        let told = events::replay(&events, &mut models, &unique);
        all.in_flight += u64::from(models[0].pending.is_some());
        let mut flaws = told.flaws;
        let store = place.join(STORE);
        let scene = Scene {
            dir: &store,
            seed: plan.seed,
            round: ROUND,
            unique: &unique,
            half_reset: false,
            mode: Mode::Durable,
        };
        let examined = examine(&scene, &mut models, &mut flaws);
        all.images += 1;
        all.payloads += examined.payloads;
        all.recovered += u64::from(is_recovered(&store));
        let flaws = flaws.into_iter().map(|flaw| (number, name.clone(), flaw));
        all.flaws.extend(flaws);
    }
    Ok(())
}

/// Whether the store kept a copy of a damaged engine.
fn is_recovered(store: &Path) -> bool {
    (1..10).any(|index| store.join(format!("damaged-{index}")).is_dir())
}

/// Writes the part of an image that belongs to the store.
fn write(image: &Image, place: &Path) -> std::io::Result<()> {
    files::make_dir(place)?;
    for dir in &image.dirs {
        files::make_dir(&place.join(dir))?;
    }
    for (name, content) in &image.files {
        files::write(&place.join(name), content)?;
    }
    Ok(())
}

/// Returns a directory for images, in memory where the system has one.
pub fn scratch() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    }
}
