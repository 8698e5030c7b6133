//! Opens a store after a crash with the product, and compares it with what was acknowledged: C1 to
//! C8.
//!
//! It runs on tokio's paused clock, so that messages which are hidden for seconds appear at once.

use std::path::Path;
use std::time::{Duration, Instant};

use smalt::store::{OpenError, PayloadId, Store, StoreConfig, StoreResult, location};
use smalt::{Clock, Emulator};

use super::child::{SEGMENT_BYTES, check_time, is_lake, name, set_namespace};
use super::mode::Mode;
use super::model::{Model, Unique};
use super::property::{Flaw, Property, Verified};
use super::wire::Client;
use super::{files, survey};
use crate::servers::ServerError;

/// C6: longest duration of the opening. A store of this size takes a hundredth of it.
const OPEN_MAX: Duration = Duration::from_secs(10);
/// Steps of one round of maintenance: more than such a store needs.
const MAINTENANCE_BUDGET: usize = 100_000;
/// First byte of the keys of payload locations.
const LOCATION: u8 = 0x01;
/// First byte of the keys of the live bytes of a segment.
const SEGMENT: u8 = 0x03;

/// Counts of what was examined.
#[derive(Clone, Copy, Debug, Default)]
pub struct Examined {
    /// Number of payloads that were read completely.
    pub payloads: u64,
    /// Number of blobs, and of names that must be free.
    pub blobs: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of entities, and of rows that must be free.
    pub entities: u64,
    /// Duration of the first opening, in milliseconds.
    pub open_ms: u64,
}

/// What to examine.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// Directory of the store.
    pub dir: &'a Path,
    /// Seed of the children, which determines the namespaces.
    pub seed: u64,
    /// Number of the round, which determines the time of the check.
    pub round: u64,
    /// Values that were given before.
    pub unique: &'a Unique,
    /// Whether a reset began and did not end.
    pub half_reset: bool,
    /// Mode of the store.
    pub mode: Mode,
}

/// Examines everything. Afterwards the models contain what exists.
pub fn examine(scene: &Scene<'_>, models: &mut [Model], flaws: &mut Vec<Flaw>) -> Examined {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    let mut examined = Examined::default();
    match runtime {
        Ok(runtime) => {
            let all = look(scene, models, &mut examined, flaws);
            if let Err(flaw) = runtime.block_on(all) {
                flaws.push(flaw);
            }
        }
        Err(error) => flaws.push(Flaw::new(Property::C6, error.to_string())),
    }
    examined
}

async fn look(
    scene: &Scene<'_>,
    models: &mut [Model],
    examined: &mut Examined,
    flaws: &mut Vec<Flaw>,
) -> Result<(), Flaw> {
    let config = StoreConfig {
        segment_bytes: SEGMENT_BYTES,
        ..(scene.mode).store(scene.dir, Clock::manual(check_time(scene.round)))
    };
    let first = open_once(&config, examined, flaws)?;
    let again = open_again(&config)?;
    if first != again {
        let text = "opening the store once more changed it";
        flaws.push(Flaw::new(Property::C7, text));
    }
    let builder = Emulator::builder()
        .clock(Clock::tokio(check_time(scene.round)))
        .segment_bytes(SEGMENT_BYTES);
    let builder = scene.mode.emulator(builder, scene.dir);
    let emulator = builder.open().map_err(cannot_open)?;
    for (worker, model) in models.iter_mut().enumerate() {
        let mut verified = Verified::default();
        if let Err(error) = connection(&emulator, scene, worker, model, &mut verified).await {
            let text = format!("{} cannot be checked: {error}", name(worker));
            verified.flaws.push(Flaw::new(Property::C1, text));
        }
        model.pending = None;
        examined.blobs += verified.blobs;
        examined.messages += verified.messages;
        examined.entities += verified.entities;
        flaws.extend(verified.all_flaws());
    }
    maintain(&emulator, scene.dir, flaws);
    audit(&emulator, flaws);
    let closed = emulator.close();
    closed
        .map_err(|error| Flaw::new(Property::C6, format!("the store does not close: {error}")))?;
    drop(emulator);
    garbage(&config, flaws)
}

/// Examines a connection's data. Afterwards the model contains what exists.
async fn connection(
    emulator: &Emulator,
    scene: &Scene<'_>,
    worker: usize,
    model: &mut Model,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    // The crash may have come before the connection made its container.
    set_namespace(emulator, is_lake(worker, scene.seed));
    let mut client = Client::within(emulator, &name(worker));
    let is_new = client.create().await?;
    if is_new && scene.half_reset {
        *model = Model::default();
    }
    let expires = scene.round.is_multiple_of(2);
    *model = survey::connection(&mut client, model, expires, scene.unique, verified).await?;
    Ok(())
}

type Dump = Vec<(Vec<u8>, Vec<u8>)>;

fn cannot_open(error: OpenError) -> Flaw {
    Flaw::new(Property::C6, format!("the store does not open: {error}"))
}

fn unreadable(error: &dyn std::fmt::Display) -> Flaw {
    Flaw::new(Property::C3, format!("the store cannot be read: {error}"))
}

/// Checks C6, and C3 for every payload that a record names.
fn open_once(
    config: &StoreConfig,
    examined: &mut Examined,
    flaws: &mut Vec<Flaw>,
) -> Result<Dump, Flaw> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the runtime's clock is paused; how long the machine takes is the question"
    )]
    let begun = Instant::now();
    let store = Store::open(config.clone()).map_err(cannot_open)?;
    let took = begun.elapsed();
    examined.open_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    if took > OPEN_MAX {
        let text = format!("opening took {took:?}");
        flaws.push(Flaw::new(Property::C6, text));
    }
    let all = dump(&store)?;
    for (key, _) in &all {
        if let Some(id) = number_after(LOCATION, key) {
            examined.payloads += 1;
            if let Err(error) = read(&store, PayloadId(id)) {
                let text = format!("payload {id}: {error}");
                flaws.push(Flaw::new(Property::C3, text));
            }
        }
    }
    close(&store)?;
    Ok(all)
}

fn open_again(config: &StoreConfig) -> Result<Dump, Flaw> {
    let store = Store::open(config.clone()).map_err(cannot_open)?;
    let all = dump(&store)?;
    close(&store)?;
    Ok(all)
}

fn close(store: &Store) -> Result<(), Flaw> {
    let closed = store.close();
    closed.map_err(|error| Flaw::new(Property::C6, format!("the store does not close: {error}")))
}

fn read(store: &Store, id: PayloadId) -> StoreResult<()> {
    let payload = store.read(|view| location(view, id))?;
    let mut reader = payload.reader(0..payload.len());
    while reader.next_chunk()?.is_some() {}
    Ok(())
}

/// Reads every record of a store.
pub fn dump(store: &Store) -> Result<Dump, Flaw> {
    let mut all = Dump::new();
    let scanned = store.read(|view| {
        view.scan(&[], &[0xFF; 4], &mut |key, value| {
            all.push((key.to_vec(), value.to_vec()));
            std::ops::ControlFlow::Continue(())
        })
    });
    scanned.map_err(|error| unreadable(&error))?;
    Ok(all)
}

fn number_after(first: u8, key: &[u8]) -> Option<u64> {
    let (found, rest) = key.split_first()?;
    let number = rest.try_into().ok().map(u64::from_be_bytes);
    number.filter(|_| *found == first)
}

/// C5: checks that after one round of maintenance nothing is left to do.
fn maintain(emulator: &Emulator, dir: &Path, flaws: &mut Vec<Flaw>) {
    let before = files::bytes_in(&dir.join("extents"));
    match emulator.maintain(MAINTENANCE_BUDGET) {
        Ok(report) if report.more => {
            let text = format!("maintenance of {before} bytes did not end: {report:?}");
            flaws.push(Flaw::new(Property::C5, text));
        }
        Ok(_) => {}
        Err(error) => {
            let text = format!("maintenance failed: {error}");
            flaws.push(Flaw::new(Property::C5, text));
        }
    }
}

/// C8: checks that every reference is counted and exists.
fn audit(emulator: &Emulator, flaws: &mut Vec<Flaw>) {
    let differences = match emulator.audit() {
        Ok(audit) => audit.differences,
        Err(error) => vec![format!("the audit failed: {error}")],
    };
    flaws.extend(
        differences
            .into_iter()
            .map(|text| Flaw::new(Property::C8, text)),
    );
}

/// C5: checks that the store takes at most twice the live bytes, and a segment or two.
fn garbage(config: &StoreConfig, flaws: &mut Vec<Flaw>) -> Result<(), Flaw> {
    let store = Store::open(config.clone()).map_err(cannot_open)?;
    let live: u64 = dump(&store)?
        .iter()
        .filter(|(key, _)| number_after(SEGMENT, key).is_some())
        .filter_map(|(_, value)| value.as_slice().try_into().ok().map(u64::from_be_bytes))
        .sum();
    close(&store)?;
    let dir = config.dir.clone().unwrap_or_default().join("extents");
    let taken = files::bytes_in(&dir);
    if taken > 2 * live + 2 * SEGMENT_BYTES {
        let text = format!("{taken} bytes of extents for {live} live bytes");
        flaws.push(Flaw::new(Property::C5, text));
    }
    Ok(())
}
