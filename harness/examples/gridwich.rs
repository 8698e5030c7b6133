//! A saga like those of Gridwich: an encoder copies a film, encodes it, and publishes the result.
//!
//! Every storage operation of the saga carries the operation context of its external request. All
//! but one are muted, so that outside systems see the new film and nothing of the work. The saga
//! survives its death at every step: it is run again from its start.
//!
//! `cargo run -p smalt-harness --example gridwich`
//! `cargo test -p smalt-harness --example gridwich`

use std::collections::BTreeSet;

use bytes::Bytes;
use smalt_sleeve::notification;
use smalt_sleeve::port::{
    BlobId, CallContext, CopyStatus, DeleteSnapshots, ErrorKind, PortError, PublicAccess, PutBlob,
};
use smalt_sleeve::{Accounts, CopyFrom, Providers, StorageContext};

use world::{ENCODER, HEALTHY, LIBRARY, Outcome, World};

#[path = "gridwich/world.rs"]
mod world;

/// The external request, as JSON of the outside system.
const REQUEST: &str = r#"{"job":7,"by":"studio"}"#;
/// The id of an outside client that is no saga.
const GUID: &str = "67ac0ccd-7d3f-4a2c-8c4e-6fb0e1d8a1c0";
const WORK: &str = "work-7";
const FILM_BYTES_MAX: u64 = 1 << 20;

// ---- the saga ------------------------------------------------------------------------------

/// Serves the external request, from its first step.
async fn encode(accounts: &Accounts) -> Outcome {
    let call = CallContext::new(REQUEST)?;
    let unmuted = StorageContext::from(call.clone());
    let muted = StorageContext::from(call.with_muted(true)?);
    let served = accounts.serve(async |all| {
        let result = BlobId::new("outbox", "film.mp4");
        let outbox = all.blob(LIBRARY, &result, &unmuted)?;
        if let Err(error) = outbox.properties().await {
            gone(Err(error))?;
            let encoded = work(all, &muted).await?;
            let once = CopyFrom {
                if_absent: true,
                ..CopyFrom::default()
            };
            let source = all.blob(ENCODER, &encoded, &muted)?;
            outbox.copy_from(&source, &once).await?;
        }
        tidy_up(all, &muted).await
    });
    Ok(served.await?)
}

/// Copies the film to the encoder's account and encodes it there, muted.
async fn work(all: &Providers<'_>, muted: &StorageContext) -> Result<BlobId, PortError> {
    let [film, copied, encoded] = [
        ("inbox", "film.mov"),
        (WORK, "film.mov"),
        (WORK, "film.mp4"),
    ]
    .map(|(container, name)| BlobId::new(container, name));
    let container = all.container(ENCODER, WORK, muted)?;
    container.create(PublicAccess::Private).await?;
    let (film, copied) = (
        all.blob(LIBRARY, &film, muted)?,
        all.blob(ENCODER, &copied, muted)?,
    );
    let (_, film) = film.properties().await?;
    let (film, all_of_it) = (film.tracking(true), CopyFrom::default());
    let (properties, copied) = copied.copy_from(&film, &all_of_it).await?;
    debug_assert!(
        properties
            .copy
            .is_some_and(|copy| copy.status == CopyStatus::Success)
    );
    let (film, _) = copied.tracking(true).read(FILM_BYTES_MAX).await?;
    let film: Vec<u8> = film.content.iter().rev().copied().collect();
    let sleeve = all.blob(ENCODER, &encoded, muted)?;
    sleeve.create(film.into(), &PutBlob::default()).await?;
    Ok(encoded)
}

/// Removes what the work left, muted.
async fn tidy_up(all: &Providers<'_>, muted: &StorageContext) -> Result<(), PortError> {
    for name in ["film.mov", "film.mp4"] {
        let sleeve = all.blob(ENCODER, &BlobId::new(WORK, name), muted)?;
        let deleted = sleeve.from_start(async |sleeve| {
            let (_, sleeve) = sleeve.properties().await?;
            sleeve.tracking(true).delete(DeleteSnapshots::Refuse).await
        });
        gone(deleted.await.map(drop))?;
    }
    let container = all.container(ENCODER, WORK, muted)?;
    gone(container.delete().await.map(drop))
}

/// What is not there was removed by an earlier run.
fn gone(removed: Result<(), PortError>) -> Result<(), PortError> {
    match removed {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

// ---- the outside ---------------------------------------------------------------------------

/// Creates the containers and uploads the film, as a client that is not a saga.
async fn upload(accounts: &Accounts) -> Outcome {
    let outside = StorageContext::from(CallContext::safe(GUID));
    let served = accounts.serve(async |all| {
        for container in ["inbox", "outbox"] {
            let container = all.container(LIBRARY, container, &outside)?;
            container.create(PublicAccess::Private).await?;
        }
        let film = all.blob(LIBRARY, &BlobId::new("inbox", "film.mov"), &outside)?;
        let content = Bytes::from_static(b"film");
        film.create(content, &PutBlob::default()).await.map(drop)
    });
    Ok(served.await?)
}

/// Returns what is published of the service's events to outside systems, each once, whether it is
/// delivered once or twice.
async fn published(world: &World) -> Outcome<Vec<String>> {
    let (mut told, mut seen) = (Vec::new(), BTreeSet::new());
    for document in world
        .events()
        .await?
        .iter()
        .flat_map(|event| [event, event])
    {
        for event in notification::read(document)? {
            let Some(response) = event.response().filter(|_| seen.insert(event.id.clone())) else {
                continue;
            };
            response.dispatch(|it| told.push(serde_json::json!(it).to_string()));
        }
    }
    Ok(told)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Outcome {
    let world = World::open(1).await?;
    let accounts = world.accounts(1, |_| HEALTHY)?;
    upload(&accounts).await?;
    encode(&accounts).await?;
    let (all, published) = (world.events().await?.len(), published(&world).await?);
    println!("{all} events, {} published:", published.len());
    published.iter().for_each(|line| println!("{line}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::world::Fate;
    use super::*;

    const EXPECTED: [(&str, &str); 2] = [
        (
            "inbox/film.mov",
            r#""operationContext":{"id":"67ac0ccd-7d3f-4a2c-8c4e-6fb0e1d8a1c0"}"#,
        ),
        (
            "outbox/film.mp4",
            r#""operationContext":{"by":"studio","job":7}"#,
        ),
    ];

    /// Checks that outside systems saw exactly the unmuted events, and that the work left nothing.
    async fn check(world: &World, accounts: &Accounts, how: &str) -> Outcome {
        let published = published(world).await?;
        assert_eq!(published.len(), EXPECTED.len(), "{how}: {published:?}");
        for (line, (url, context)) in published.iter().zip(EXPECTED) {
            assert!(
                line.contains(url) && line.contains(context),
                "{how}: {line}"
            );
        }
        let context = StorageContext::default();
        let left = accounts.serve(async |all| {
            let result = BlobId::new("outbox", "film.mp4");
            let (film, _) = all.blob(LIBRARY, &result, &context)?.read(9).await?;
            assert_eq!(film.content, "mlif", "{how}");
            let work = all.container(ENCODER, WORK, &context)?;
            gone(
                work.properties()
                    .await
                    .map(|_| panic!("{how}: the work is left")),
            )
        });
        Ok(left.await?)
    }

    /// G7-G9: the outside sees the film that it uploaded and the encoded one, with their contexts,
    /// and nothing of the work, whose events carry the same context.
    #[tokio::test(start_paused = true)]
    async fn the_outside_sees_exactly_the_unmuted_events() -> Outcome {
        let world = World::open(1).await?;
        let accounts = world.accounts(1, |_| HEALTHY)?;
        upload(&accounts).await?;
        encode(&accounts).await?;
        check(&world, &accounts, "healthy").await?;
        let muted = world
            .events()
            .await?
            .iter()
            .flat_map(|it| notification::read(it))
            .flatten()
            .filter(|event| event.context.muted && event.context.client_request_id == REQUEST)
            .count();
        assert_eq!(muted, 4, "two created, two deleted");
        Ok(())
    }

    /// The saga dies or loses its connection, before or after each of its requests is executed, and
    /// is run again: the outside sees the same.
    #[tokio::test(start_paused = true)]
    async fn a_saga_that_dies_at_any_step_is_finished_by_the_next() -> Outcome {
        let mut deaths = 0;
        for step in 0.. {
            let before = deaths;
            for (executed, alive) in [(true, false), (false, false), (true, true), (false, true)] {
                let world = World::open(1).await?;
                let accounts = world.accounts(1, |_| HEALTHY)?;
                upload(&accounts).await?;
                let broken = Fate {
                    executed,
                    answered: false,
                    alive,
                    ..HEALTHY
                };
                let fate = move |number| if number == step { broken } else { HEALTHY };
                let dying = world.accounts(1, fate)?;
                let run = tokio::time::timeout(Duration::from_secs(3_600), encode(&dying)).await;
                deaths += usize::from(run.is_err());
                encode(&accounts).await?;
                check(&world, &accounts, &format!("{broken:?} at request {step}")).await?;
            }
            if deaths == before {
                break;
            }
        }
        assert!(deaths >= 20, "{deaths} deaths cover every step of the saga");
        Ok(())
    }
}
