//! Tests that the configuration of the original design works unchanged: its XML document with SAS
//! URIs and escaped ampersands, pages of 100, and moves that overwrite.

use std::sync::{Arc, Mutex};

use smalt_sleeve::port::Storage;
use smalt_sweeper::{Accounts, Outcome, Sweeper, settings};

use crate::fake::{Account, World};
use crate::support::*;

/// A document as its author would write it: no version, no ledger, SAS URIs, a container that is
/// switched off, one with progress, white space and comments.
const DOCUMENT: &str = r#"<?xml version="1.0" encoding="utf-8" ?>
<Containers timestamp="11/21/2026 9:00:00 AM" purged="12">
  <!-- sales keeps its dead blobs -->
  <Container name="sales" status="Init" prefix=""
             uri="https://acct.blob.core.windows.net/events?sr=c&amp;sig=a%2Bb%3D&amp;sp=rwdl"
             token="" />
  <Container name="logs" status="Current" prefix="app/" token="m:app/0100"
             uri="https://acct.blob.core.windows.net/logs?sr=c&amp;sig=c%3D&amp;sp=rdl" />
  <Container name="off" status="Off" prefix="" token=""
             uri="https://acct.blob.core.windows.net/paused?sr=c&amp;sig=d" />
</Containers>
"#;

/// Returns a worker with the profile, and the URIs that it opens.
fn sweeper(world: &Arc<World>) -> (Sweeper, Arc<Mutex<Vec<String>>>) {
    let said = [
        ("sweeper.profile", toml::Value::from("compat")),
        ("sweeper.dead.account", toml::Value::from("archive")),
        (
            "account.default.connection_string",
            toml::Value::from("UseDevelopmentStorage=true"),
        ),
    ];
    let config = settings::gather(None, [], said).unwrap().sweeper;
    assert_eq!(config.page_size, 100);
    let (source, archive) = Account::pair(world, Vec::new(), 1);
    let opened: Arc<Mutex<Vec<String>>> = Arc::default();
    let (notes, by_uri) = (Arc::clone(&opened), Arc::clone(&source));
    let accounts = Accounts::new()
        .with("default", source)
        .with("archive", archive)
        .with_open_uri(Arc::new(move |uri| {
            notes.lock().unwrap().push(uri.to_owned());
            Ok(Arc::clone(&by_uri) as Arc<dyn Storage>)
        }));
    (Sweeper::new(config, accounts, 1).unwrap(), opened)
}

#[tokio::test(start_paused = true)]
async fn the_original_configuration_works_unchanged() {
    let world = World::new();
    world.lock().allow_overwrite = true;
    world.put_state(DOCUMENT);
    world.put("acct/events/a", &[DUE]);
    world.put(
        "acct/events/b",
        &[DUE, ("DeadBlobContainer", "dbc/deleteme/")],
    );
    world.put("acct/events/later", &[("TimeToLive", FUTURE)]);
    world.put("acct/paused/a", &[DUE]);
    world.put("archive/dbc/deleteme/b", &[("Old", "1")]);
    world.put_many("acct/logs/app/0", 250, &[DUE]);
    let (sweeper, opened) = sweeper(&world);
    let finished = sweeper.once().await;
    assert!(finished.error.is_none(), "{:?}", finished.error);
    assert_eq!(finished.report.count(Outcome::Moved), 1);
    assert_eq!(world.names("acct", "events"), ["later"]);
    // The worker continued at the document's marker; the first hundred follow in the next cycle
    // (S20, S22).
    assert_eq!(world.names("acct", "logs").len(), 100);
    assert!(world.has("acct/paused/a"));
    assert!(
        !world
            .get("archive/dbc/deleteme/b")
            .unwrap()
            .metadata
            .contains_key("Old")
    );
    // Ampersands and escapes are unchanged.
    let sas = "https://acct.blob.core.windows.net/events?sr=c&sig=a%2Bb%3D&sp=rwdl";
    assert!(opened.lock().unwrap().iter().any(|uri| uri == sas));
    // The written document keeps the author's version 1, SAS and comment.
    let document = world.state();
    assert_eq!(
        (document.version, document.containers[0].uri.as_deref()),
        (1, Some(sas))
    );
    let text = smalt_sweeper::state::write(&document).unwrap();
    assert!(text.contains("sales keeps its dead blobs") && text.contains("sr=c&amp;sig=a%2Bb%3D"));
    // A page has at most a hundred blobs; with larger pages the count would differ.
    assert_eq!(finished.report.containers["logs"].pages, 2);
    let report = serde_json::to_string(&finished.report).unwrap();
    assert!(!report.contains("sig=a"));
    sleep(600).await;
    sweeper.once().await;
    assert!(world.names("acct", "logs").is_empty());
}
