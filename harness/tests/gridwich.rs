//! Properties of Gridwich's storage service over random histories, each from a seed and run twice:
//! contexts come back as they were sent, muted operations are never published, and tracked writes
//! lose no update, under lost answers, broken connections and duplicate deliveries.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use smalt_harness::check::Seeds;
use smalt_sleeve::notification;
use smalt_sleeve::port::{
    BlobId, CallContext, DeleteSnapshots, ErrorKind, Metadata, PortResult, PublicAccess, PutBlob,
};
use smalt_sleeve::{Accounts, BlobSleeve, CopyFrom, StorageContext};

use self::world::{ENCODER, Fate, HEALTHY, LIBRARY, Outcome, World};

#[path = "../examples/gridwich/world.rs"]
mod world;

const SEEDS: u64 = 500;
/// Seeds that run at a time.
const JOBS: u64 = 4;
const CONTAINER: &str = "films";
const WRITERS: usize = 3;
const WRITES: usize = 2;

/// Runs `run` twice for every seed, several at a time, and compares what it returns.
fn twice<T: PartialEq + std::fmt::Debug + Send>(
    run: impl AsyncFn(u64) -> Outcome<T> + Sync,
) -> Outcome<Vec<T>> {
    let one = |seed| -> Outcome<T> {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().start_paused(true).build()?;
        runtime.block_on(run(seed))
    };
    let both = |seed| -> Outcome<Vec<T>> {
        let (first, second) = (one(seed)?, one(seed)?);
        assert_eq!(first, second, "seed {seed} reproduces its run");
        Ok(vec![first])
    };
    let seeds = Seeds {
        first: 1,
        count: SEEDS,
        jobs: JOBS,
    };
    let ran = seeds.each(
        || (),
        |(), seed| both(seed).map_err(|error| error.to_string()),
        |all: &mut Vec<T>, mut one| all.append(&mut one),
    );
    ran.map_err(|(seed, error)| format!("seed {seed}: {error}").into())
}

fn dice(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Of twenty requests, one breaks before it is executed and two after; answers take up to 50 ms.
fn rough(seed: u64) -> impl Fn(usize) -> Fate + Send + Sync {
    move |number| {
        let mut dice = dice(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
        let luck = dice.next_u32() % 20;
        Fate {
            delay: Duration::from_millis(u64::from(dice.next_u32() % 50)),
            executed: luck != 0,
            answered: luck > 2,
            ..HEALTHY
        }
    }
}

async fn setup(world: &World) -> Outcome<Accounts> {
    let calm = world.accounts(1, |_| HEALTHY)?;
    calm.serve(async |all| {
        for account in [LIBRARY, ENCODER] {
            let container = all.container(account, CONTAINER, &StorageContext::default())?;
            container.create(PublicAccess::Private).await?;
        }
        PortResult::Ok(())
    })
    .await?;
    Ok(calm)
}

/// A context with an odd text: JSON of every kind, a GUID, marks, spaces, characters beyond ASCII.
fn context(dice: &mut ChaCha8Rng) -> CallContext {
    const PARTS: [&str; 12] = [
        "{",
        "}",
        r#""muted""#,
        ":true",
        r#""id":"x""#,
        ",",
        "é",
        r#"{"job":7}"#,
        " ",
        "8a1c",
        r#"{"muted":0}"#,
        r#"\"#,
    ];
    let mut pick = |most: usize| dice.next_u32() as usize % most;
    let count = pick(5);
    let text: String = (0..count).map(|_| PARTS[pick(PARTS.len())]).collect();
    let context = CallContext::safe(&text);
    context.with_muted(pick(2) == 0).unwrap_or(context)
}

/// One random operation; whether it succeeds does not matter.
async fn act(sleeve: &BlobSleeve<'_>, other: &BlobSleeve<'_>, choice: u32) -> PortResult<()> {
    match choice % 4 {
        0 | 1 => {
            let content = Bytes::from_static(b"film");
            sleeve.create(content, &PutBlob::default()).await.map(drop)
        }
        2 => {
            let copy = CopyFrom::default();
            sleeve.copy_from(other, &copy).await.map(drop)
        }
        _ => sleeve.delete(DeleteSnapshots::Refuse).await.map(drop),
    }
}

/// G7-G9: every event has the context that its operation was sent with, byte for byte, and exactly
/// those of unmuted operations are published, however often they are delivered.
#[test]
fn contexts_return_and_muted_events_are_never_published() -> Outcome {
    let runs = twice(async |seed| {
        let world = World::open(seed).await?;
        setup(&world).await?;
        let (mut dice, accounts) = (dice(seed), world.accounts(seed, rough(seed))?);
        let mut sent = BTreeMap::new();
        for number in 0..7 {
            let name = format!("film-{number}");
            let context = context(&mut dice);
            let (account, choice) = (
                [LIBRARY, ENCODER][dice.next_u32() as usize % 2],
                dice.next_u32(),
            );
            let done = accounts.serve(async |all| {
                let cx = StorageContext::from(context.clone());
                let sleeve = all.blob(account, &BlobId::new(CONTAINER, &name), &cx)?;
                let other = all.blob(LIBRARY, &BlobId::new(CONTAINER, "film-0"), &cx)?;
                act(&sleeve, &other, choice).await
            });
            // An operation may fail: an executed one counts, an answered one need not.
            let _ = done.await;
            sent.insert(name, context);
        }
        let (mut events, mut published) = (0, 0);
        for document in world
            .events()
            .await?
            .iter()
            .flat_map(|event| [event, event])
        {
            let [event] = &notification::read(document)?[..] else {
                return Err("not one event".into());
            };
            let name = event.url.rsplit('/').next().unwrap_or_default();
            let expected = sent
                .get(name)
                .ok_or_else(|| format!("unknown blob {name}"))?;
            assert_eq!(&event.context, expected, "seed {seed}");
            let response = event.response().ok_or("neither created nor deleted")?;
            assert_eq!(response.dispatch(|_| {}), !expected.muted, "seed {seed}");
            events += 1;
            published += usize::from(!expected.muted);
        }
        Ok((events, published))
    })?;
    let (events, published) = runs
        .iter()
        .fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    println!("{SEEDS} seeds: {events} deliveries, {published} published");
    assert!(
        published > 1_000 && events - published > 1_000,
        "both kinds are common"
    );
    Ok(())
}

fn number(metadata: &Metadata, name: &str) -> u32 {
    let text = metadata.get(name);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Adds 1 to two numbers in the metadata of the blob, the writer's and the sum, by reading and
/// writing it.
async fn add_one(sleeve: &BlobSleeve<'_>, writer: &str) -> PortResult<()> {
    sleeve
        .from_start(async |sleeve| {
            let (properties, sleeve) = sleeve.properties().await?;
            let mut metadata: Metadata = properties.metadata;
            for name in [writer, "sum"] {
                let more = number(&metadata, name) + 1;
                metadata.insert(name.to_owned(), more.to_string());
            }
            sleeve.tracking(true).set_metadata(&metadata).await
        })
        .await
        .map(drop)
}

/// Adds 1 several times. Returns how many times it was acknowledged, and how often the outcome is
/// unknown.
async fn write(sleeve: &BlobSleeve<'_>, writer: usize) -> PortResult<(u32, u32)> {
    let (mut done, mut unknown) = (0, 0);
    for _ in 0..WRITES {
        match add_one(sleeve, &format!("w{writer}")).await {
            Ok(()) => done += 1,
            Err(error) if error.kind == ErrorKind::OutcomeUnknown => unknown += 1,
            Err(error) if error.kind == ErrorKind::ConditionNotMet => {}
            Err(error) => return Err(error),
        }
    }
    Ok((done, unknown))
}

/// G11, G13, DG3, DG5: writers that read and then write the same blob lose no update of each other:
/// every acknowledged update is there, and none is there twice.
#[test]
fn tracked_writes_lose_no_update() -> Outcome {
    let runs = twice(async |seed| {
        let world = World::open(seed).await?;
        let calm = setup(&world).await?;
        let accounts = world.accounts(seed, rough(seed))?;
        let (blob, cx) = (BlobId::new(CONTAINER, "film"), StorageContext::default());
        let created = calm.serve(async |all| {
            let sleeve = all.blob(LIBRARY, &blob, &cx)?;
            sleeve
                .create(Bytes::new(), &PutBlob::default())
                .await
                .map(drop)
        });
        created.await?;
        let writers = accounts.serve(async |all| {
            let sleeve = all.blob(LIBRARY, &blob, &cx)?;
            PortResult::Ok(join_all((0..WRITERS).map(|writer| write(&sleeve, writer))).await)
        });
        let told = writers.await?.into_iter();
        let told = told.collect::<PortResult<Vec<_>>>()?;
        let read = calm.serve(async |all| {
            all.blob(LIBRARY, &blob, &cx)?
                .properties()
                .await
                .map(|it| it.0)
        });
        let metadata = read.await?.metadata;
        let number = |name: &str| number(&metadata, name);
        for (writer, (done, unknown)) in told.iter().enumerate() {
            let found = number(&format!("w{writer}"));
            assert!(
                (*done..=done + unknown).contains(&found),
                "seed {seed}: {found} of {told:?}"
            );
        }
        let each: u32 = (0..WRITERS)
            .map(|writer| number(&format!("w{writer}")))
            .sum();
        assert_eq!(
            number("sum"),
            each,
            "seed {seed}: no update overwrites another"
        );
        Ok(told)
    })?;
    let sum = |of: fn(&(u32, u32)) -> u32| runs.iter().flatten().map(of).sum::<u32>();
    let (done, unknown) = (sum(|it| it.0), sum(|it| it.1));
    println!("{SEEDS} seeds: {done} acknowledged, {unknown} with an unknown outcome");
    assert!(done > 1_500 && unknown > 50, "both outcomes are common");
    Ok(())
}
