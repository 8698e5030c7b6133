//! T4: what a further query does to the entities that the example's client remembers.

use serde_json::json;

use crate::channels::app::context::{Context, Entity, MergeOption};
use crate::channels::app::site::{CHANNELS, ONLY, channel_row, is_valid};
use crate::channels::app::tables::{Row, TableError, row};
use crate::channels::app::worker::{ATTEMPTS, mark_invalid};
use crate::channels::{ONE, Outcome, prepared};

use MergeOption::{AppendOnly, OverwriteChanges, PreserveChanges};

/// The table of the rule: which ETag, properties and changes an entity has after a second query.
#[test]
fn t4_each_merge_option_keeps_and_replaces_its_parts() {
    let known = Entity {
        read: row(json!({"Owner": "first"})),
        changes: row(json!({"Valid": false})),
        tag: "1".to_owned(),
    };
    for (option, owner, keeps_changes, tag) in [
        (AppendOnly, "first", true, "1"),
        (PreserveChanges, "second", true, "2"),
        (OverwriteChanges, "second", false, "2"),
    ] {
        let mut entity = known.clone();
        entity.queried(option, row(json!({"Owner": "second"})), "2".to_owned());
        let wanted = Entity {
            read: row(json!({ "Owner": owner })),
            changes: match keeps_changes {
                true => known.changes.clone(),
                false => Row::new(),
            },
            tag: tag.to_owned(),
        };
        assert_eq!(entity, wanted, "{option:?}");
    }
}

/// T2, T4: after 412 a client that queries again succeeds, except one that keeps its first ETag: it
/// gets 412 at every attempt.
#[tokio::test(start_paused = true)]
async fn t4_a_client_that_only_appends_gets_412_for_ever() -> Outcome {
    for (option, succeeds) in [
        (AppendOnly, false),
        (PreserveChanges, true),
        (OverwriteChanges, true),
    ] {
        let (account, own) = prepared(&ONE).await?;
        let channel = ONE.channels().remove(0);
        let mut channels = Context::new(&own.tables, CHANNELS, option);
        let entity = channels.query((&channel, ONLY)).await?;
        entity.ok_or("no channel")?.set("Valid", false.into());
        // Another process writes the row meanwhile.
        let rival = channel_row(&channel, true);
        own.tables.merge(CHANNELS, &rival, "*").await?;
        let stale = channels.save((&channel, ONLY)).await;
        assert!(matches!(stale, Err(TableError::Changed)), "{stale:?}");
        let marked = mark_invalid(&mut channels, &channel).await;
        let stored = own.tables.get(CHANNELS, (&channel, ONLY)).await?;
        let (stored, tag) = stored.ok_or("no channel")?;
        assert_eq!(is_valid(&stored), !succeeds, "{option:?}");
        let refused = (account.history().iter())
            .filter(|exchange| exchange.response.status() == 412)
            .count();
        match succeeds {
            true => {
                assert_eq!(marked?, Some(tag), "{option:?}");
                assert_eq!(refused, 1, "{option:?}");
            }
            false => {
                assert!(matches!(marked, Err(TableError::Changed)), "{marked:?}");
                assert_eq!(refused, 1 + ATTEMPTS as usize);
            }
        }
    }
    Ok(())
}
