//! Measures the store alone, without HTTP: `cargo run --release -p smalt --example store_figures`.
//!
//! The directory is a temporary one, or the first argument: the figures are those of its disk. The
//! second argument picks one mode, the third gives the commits of each of the 64 clients,
//! the fourth the engine's cache in MiB.

use std::ops::ControlFlow;
use std::path::PathBuf;

use smalt::clock::Clock;
use smalt::store::{PayloadId, Store, StoreConfig, adopt, location};
use tokio::time::Instant;

const CLIENTS: u64 = 64;
const COMMITS: u64 = 2_000;
/// How often each key is written: garbage in the engine's log.
const ROUNDS: u64 = 2;
const READS: u64 = 1_000_000;
const LARGE_BYTES: usize = 8 * 1024 * 1024;
const LARGE: u64 = 32;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let dir = std::env::args().nth(1).map(PathBuf::from);
    let dir = dir.unwrap_or_else(|| std::env::temp_dir().join("smalt-store-figures"));
    for (name, mut config) in [
        ("memory", StoreConfig::memory(Clock::system())),
        ("fast", StoreConfig::fast(dir.join("fast"), Clock::system())),
        (
            "durable",
            StoreConfig::durable(dir.join("durable"), Clock::system()),
        ),
    ] {
        if std::env::args().nth(2).is_some_and(|only| only != name) {
            continue;
        }
        if let Some(cache_mib) = std::env::args().nth(4) {
            config.cache_bytes = cache_mib.parse::<u64>()? << 20;
        }
        let started = Instant::now();
        let store = Store::open(config.clone())?;
        let opened = started.elapsed();
        println!("{name}: open {opened:?}, resident {} MiB", resident_mib());
        store.reset()?;
        let commits = match std::env::args().nth(3) {
            Some(commits) => commits.parse()?,
            None => COMMITS,
        };
        for _ in 0..ROUNDS {
            small_commits(&store, commits).await?;
        }
        println!("  resident {} MiB", resident_mib());
        reads(&store, CLIENTS * commits)?;
        large_payloads(&store).await?;
        println!("  {:?}, resident {} MiB", store.stats(), resident_mib());
        store.close()?;
        let started = Instant::now();
        drop(Store::open(config)?);
        println!("  open and close again {:?}", started.elapsed());
    }
    Ok(())
}

fn key(number: u64) -> Vec<u8> {
    [&[0x20], number.to_be_bytes().as_slice()].concat()
}

async fn small_commits(store: &Store, commits: u64) -> Outcome<()> {
    let started = Instant::now();
    let clients = (0..CLIENTS).map(|client| {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..commits {
                let key = key(client * commits + n);
                let done = store.commit(move |tx, _| {
                    tx.put(key, vec![7; 200]);
                    Ok(())
                });
                if done.await.is_err() {
                    return false;
                }
            }
            true
        })
    });
    for client in clients.collect::<Vec<_>>() {
        if !client.await? {
            return Err("a commit failed".into());
        }
    }
    let rate = (CLIENTS * commits) as f64 / started.elapsed().as_secs_f64();
    println!("  {rate:.0} commits/s of 200 bytes at {CLIENTS} clients");
    Ok(())
}

fn reads(store: &Store, keys: u64) -> Outcome<()> {
    let started = Instant::now();
    for n in 0..READS {
        let key = key(n * 7_919 % keys);
        let value = store.read(|view| view.get(&key))?;
        if value.is_none() {
            return Err("a key is missing".into());
        }
    }
    let rate = READS as f64 / started.elapsed().as_secs_f64();
    println!("  {rate:.0} reads/s of one key");
    let started = Instant::now();
    for n in 0..100 {
        let mut left = 5_000;
        store.read(|view| {
            view.scan(&key(n * 1_000), &[0x21], &mut |_, _| {
                left -= 1;
                if left == 0 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
        })?;
    }
    println!("  {:?} for a scan of 5,000 keys", started.elapsed() / 100);
    Ok(())
}

async fn large_payloads(store: &Store) -> Outcome<()> {
    let bytes = vec![42; LARGE_BYTES];
    let started = Instant::now();
    let mut ids: Vec<PayloadId> = Vec::new();
    let mut staging = std::time::Duration::ZERO;
    for _ in 0..LARGE {
        let before = Instant::now();
        let mut writer = store.stage(LARGE_BYTES as u64)?;
        for piece in bytes.chunks(256 * 1024) {
            writer.write(piece)?;
        }
        staging += before.elapsed();
        let staged = writer.finish().await?;
        let id = store.commit(move |tx, _| Ok(adopt(tx, staged)?)).await;
        ids.push(id.map_err(|error| format!("{error:?}"))?);
    }
    let mib = (LARGE_BYTES as u64 * LARGE) as f64 / f64::from(1 << 20);
    let all = mib / started.elapsed().as_secs_f64();
    let staged = mib / staging.as_secs_f64();
    println!("  8 MiB: {staged:.0} MiB/s staged, {all:.0} MiB/s committed");
    let started = Instant::now();
    for id in ids {
        let payload = store.read(|view| location(view, id))?;
        let mut reader = store.payload(&payload, 0..payload.len());
        while reader.next_chunk()?.is_some() {}
    }
    println!(
        "  8 MiB: {:.0} MiB/s read",
        mib / started.elapsed().as_secs_f64()
    );
    Ok(())
}

/// What the process has in memory, where the system tells it.
fn resident_mib() -> u64 {
    let Some(text) = std::process::Command::new("ps")
        .args(["-o", "rss=", "-p", &std::process::id().to_string()])
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
    else {
        return 0;
    };
    text.trim().parse::<u64>().unwrap_or(0) / 1024
}
