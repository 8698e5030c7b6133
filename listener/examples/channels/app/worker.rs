//! The worker: deletes the channel that a message names, with all its blogs. Any number of these
//! processes share the work; each may die at any point, and the next one that gets the message
//! starts again and finds the completed steps done.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use smalt_listener::handler::{Context, Handler, Message, Verdict, text};
use smalt_listener::{QueueListener, Report};
use smalt_protocol::table::key::check_key;

use super::context::{self, MergeOption};
use super::site::{BLOGS, CHANNELS, ONLY, Site, is_valid};
use super::tables::{self, Change, TRANSACTION_MAX, TableError, TableResult};

/// Attempts at a mark while others change the row as well.
pub(crate) const ATTEMPTS: u32 = 10;

/// Options of a worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// Simulated duration of each transaction.
    pub(crate) pause: Duration,
    /// Skips the second look for blogs before the channel's row is deleted (DT3), to show the
    /// effect.
    pub(crate) forget_second_look: bool,
    /// What a query after a 412 does to the row that was read (T4).
    pub(crate) merge_option: MergeOption,
}

/// Runs until stopped.
pub(crate) async fn run(
    site: &Site,
    manner: Manner,
    shutdown: impl Future<Output = ()> + Send,
) -> anyhow::Result<Report> {
    let handler = text(Worker {
        site: site.clone(),
        manner,
    });
    let storage = Arc::clone(&site.storage);
    let listener = QueueListener::new(site.config(), storage, Arc::new(handler), site.seed)?;
    Ok(listener.run_until(shutdown).await?)
}

struct Worker {
    site: Site,
    manner: Manner,
}

#[async_trait]
impl Handler<String> for Worker {
    /// Makes steps a to c. The listener makes step d afterwards, and keeps the message from other
    /// workers until then.
    async fn handle(&self, message: &Message<String>, ctx: &Context) -> Verdict {
        let channel = &message.body;
        if let Err(error) = check_key(channel) {
            return Verdict::reject(format!("not a channel name: {error}"));
        }
        let deleted = tokio::select! {
            biased;
            deleted = delete_channel(&self.site, channel, self.manner) => deleted,
            // Another worker may have the message now and continues from here.
            () = ctx.cancelled() => return Verdict::retry("cancelled"),
        };
        match deleted {
            Ok(blogs) => {
                tracing::info!(channel, blogs, attempt = message.dequeue_count, "deleted");
                Verdict::Ok
            }
            Err(error) => Verdict::retry(error.to_string()),
        }
    }
}

/// Makes steps a to c. Returns the number of blogs found and deleted.
pub(crate) async fn delete_channel(
    site: &Site,
    channel: &str,
    manner: Manner,
) -> TableResult<usize> {
    let mut channels = context::Context::new(&site.tables, CHANNELS, manner.merge_option);
    let mark = mark_invalid(&mut channels, channel).await?;
    let mut blogs = pass(site, channel, manner).await?;
    if !manner.forget_second_look {
        blogs += look_again(site, channel, manner).await?;
    }
    if let Some(tag) = mark {
        // Deletes only the row that was marked: if a process made the channel valid again
        // meanwhile, the service answers 412, and the next attempt starts with the mark.
        match site.tables.delete(CHANNELS, (channel, ONLY), &tag).await {
            Ok(()) | Err(TableError::Missing) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(blogs)
}

/// Makes the second look: passes from the beginning until one finds nothing, so that a blog that
/// was written behind the first pass is deleted before the row.
async fn look_again(site: &Site, channel: &str, manner: Manner) -> TableResult<usize> {
    let mut blogs = 0;
    loop {
        match pass(site, channel, manner).await? {
            0 => return Ok(blogs),
            found => blogs += found,
        }
    }
}

/// Step a: marks the channel, so that no writer starts a blog. Returns the ETag of the marked row;
/// `None` if an earlier attempt has deleted the row.
///
/// After 412 it queries, changes and saves again (T2), which needs a context that takes the ETag of
/// each query (T4).
pub(crate) async fn mark_invalid(
    channels: &mut context::Context,
    channel: &str,
) -> TableResult<Option<String>> {
    for _ in 0..ATTEMPTS {
        let Some(found) = channels.query((channel, ONLY)).await? else {
            return Ok(None);
        };
        if !is_valid(&found.read) {
            return Ok(Some(found.tag.clone()));
        }
        found.set("Valid", false.into());
        match channels.save((channel, ONLY)).await {
            Ok(tag) => return Ok(Some(tag)),
            // Another process changed the row, or the own first try did.
            Err(TableError::Changed) => {}
            Err(TableError::Missing) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Err(TableError::Changed)
}

/// Step b: deletes the partition's blogs page by page, with one transaction each. Returns their
/// number.
///
/// Like every scan it misses blogs that are inserted behind it: before its position, or after its
/// last page.
async fn pass(site: &Site, channel: &str, manner: Manner) -> TableResult<usize> {
    let mut deleted = 0;
    let mut from = None;
    loop {
        let page = (site.tables)
            .page(BLOGS, Some(channel), TRANSACTION_MAX, from.as_ref())
            .await?;
        let delete = |row| Change::Delete {
            partition: channel.to_owned(),
            row: tables::text(row, "RowKey").to_owned(),
        };
        let deletes: Vec<_> = page.rows.iter().map(delete).collect();
        if !deletes.is_empty() {
            tokio::time::sleep(manner.pause).await;
            match site.tables.transact(BLOGS, &deletes).await {
                Ok(()) => deleted += deletes.len(),
                // Another process deleted one of the blogs, so the whole transaction failed. The
                // same page now has fewer rows.
                Err(TableError::Missing) => continue,
                Err(error) => return Err(error),
            }
        }
        match page.next {
            Some(next) => from = Some(next),
            None => return Ok(deleted),
        }
    }
}
