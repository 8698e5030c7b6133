//! The workers on an account with a hierarchical namespace: payloads arrive, and a sweep removes
//! files and no directories.

use bytes::Bytes;
use smalt_listener::handler::Verdict;
use smalt_listener::payload::{Offload, SendOptions};
use smalt_sleeve::port::{
    BlobId, CallContext, Conditions, ErrorKind, ListBlobs, Metadata, PutBlob,
};
use smalt_sweeper::decide::Policy;
use smalt_sweeper::{Accounts, Collision, DeadConfig, Sweeper, SweeperConfig, SweptContainer};

use super::support::{CONTAINER, Keep, Outcome, World, body, s};

const DEAD: &str = "dead";
const DUE: (&str, &str) = ("TimeToLive", "2001-01-01T00:00:00Z");

fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

impl World {
    async fn put(&self, name: &str, pairs: &[(&str, &str)]) -> Outcome {
        let put = PutBlob {
            metadata: metadata(pairs),
            ..PutBlob::default()
        };
        let (cx, blob) = (CallContext::default(), BlobId::new(CONTAINER, name));
        let content = Bytes::from(name.to_owned());
        self.storage.put_blob(&cx, &blob, content, &put).await?;
        Ok(())
    }

    async fn names(&self, container: &str) -> Outcome<Vec<String>> {
        let (cx, all) = (CallContext::default(), ListBlobs::default());
        match self.storage.list_blobs(&cx, container, &all).await {
            Ok(page) => Ok(page.blobs.into_iter().map(|blob| blob.name).collect()),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs one cycle of a real sweeper that moves dead blobs; returns the names of the outcomes
    /// with their numbers.
    async fn sweep_into_dead(&self, on_collision: Collision) -> Outcome<Vec<(String, u64)>> {
        let config = SweeperConfig {
            state_blob: BlobId::new("ops", "state"),
            containers: vec![SweptContainer {
                account: "default".to_owned(),
                container: CONTAINER.to_owned(),
                prefix: String::new(),
            }],
            dead: DeadConfig {
                account: Some("default".to_owned()),
                on_collision,
                ..DeadConfig::default()
            },
            policy: Policy {
                allow: vec![DEAD.to_owned()],
                ..Policy::default()
            },
            ..SweeperConfig::default()
        };
        let accounts = Accounts::new().with("default", self.storage.clone());
        let finished = Sweeper::new(config, accounts, 5)?.once().await;
        if let Some(error) = finished.error {
            return Err(error.into());
        }
        let containers = finished.report.containers.into_values();
        let outcomes = containers.flat_map(|container| container.outcomes);
        Ok(outcomes
            .map(|(outcome, count)| (outcome.to_string(), count))
            .collect())
    }
}

/// A body that is too long for a message is delivered through a hierarchical account.
#[tokio::test(start_paused = true)]
async fn a_payload_is_delivered() -> Outcome {
    let world = World::hierarchical().await?;
    let body = body(1 << 20, 7);
    let sender = world.sender(Offload::into(CONTAINER))?;
    sender.send(&body, SendOptions::default()).await?;
    let handler = Keep::saying(Verdict::Ok);
    world.listen(&handler, s(5)).await?;
    assert_eq!(handler.bodies(), [Bytes::from(body)]);
    world.assert_ls6();
    let is_payload = |(_, blob): &(String, _)| !is_directory(blob);
    assert!(!world.payloads().await?.iter().any(is_payload));
    Ok(())
}

fn is_directory(blob: &smalt_sleeve::port::BlobProperties) -> bool {
    blob.metadata.contains_key("hdi_isfolder")
}

/// Due files go, to a new directory of the destination where they name one; due directories stay,
/// empty or not.
#[tokio::test(start_paused = true)]
async fn a_sweep_removes_files_and_no_directories() -> Outcome {
    let world = World::hierarchical().await?;
    world.put("a/b/deleted", &[DUE]).await?;
    world
        .put("a/moved", &[DUE, ("DeadBlobContainer", "dead/old/")])
        .await?;
    world.put("kept/file", &[]).await?;
    let cx = CallContext::default();
    for directory in ["a", "a/b", "kept"] {
        let (blob, any) = (BlobId::new(CONTAINER, directory), Conditions::default());
        let due = metadata(&[DUE, ("hdi_isfolder", "true")]);
        world
            .storage
            .set_blob_metadata(&cx, &blob, &due, &any)
            .await?;
    }
    for outcomes in [
        [
            ("deleted", 1),
            ("moved", 1),
            ("directory", 3),
            ("no_ttl", 1),
        ]
        .as_slice(),
        &[("directory", 3), ("no_ttl", 1)],
    ] {
        let found = world.sweep_into_dead(Collision::Fail).await?;
        let mut expected: Vec<_> = outcomes
            .iter()
            .map(|(n, c)| ((*n).to_owned(), *c))
            .collect();
        let mut found: Vec<_> = found.into_iter().filter(|(_, count)| *count > 0).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        assert_eq!(
            world.names(CONTAINER).await?,
            ["a", "a/b", "kept", "kept/file"]
        );
        assert_eq!(world.names(DEAD).await?, ["old", "old/a", "old/a/moved"]);
    }
    Ok(())
}

/// A directory in place of a copy is a collision, beside which a suffix finds a name; a file in
/// place of the copy's directory always is one. The source stays.
#[tokio::test(start_paused = true)]
async fn a_taken_destination_keeps_the_file() -> Outcome {
    for (policy, moves) in [
        (Collision::Fail, false),
        (Collision::Overwrite, false),
        (Collision::Suffix, true),
    ] {
        let world = World::hierarchical().await?;
        let cx = CallContext::default();
        world.storage.create_container(&cx, DEAD).await?;
        let taken = BlobId::new(DEAD, "one/below");
        let put = PutBlob::default();
        let content = Bytes::from_static(b"x");
        world.storage.put_blob(&cx, &taken, content, &put).await?;
        world
            .put("first", &[DUE, ("DeadBlobContainer", "dead/one")])
            .await?;
        world
            .put("second", &[DUE, ("DeadBlobContainer", "dead/one/below/")])
            .await?;
        world.sweep_into_dead(policy).await?;
        let left = world.names(CONTAINER).await?;
        assert_eq!(left.contains(&"first".to_owned()), !moves, "{policy:?}");
        assert!(left.contains(&"second".to_owned()), "{policy:?}");
    }
    Ok(())
}
