//! The worker: deletes a channel and all its blogs, as the message says. Any number of these
//! processes share the work; each may die at any point, and the next that gets the message begins
//! anew: what is done is found done.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use smalt_listener::handler::{Context, Handler, Message, Verdict, text};
use smalt_listener::{QueueListener, Report};
use smalt_protocol::table::key::check_key;

use super::site::{BLOGS, CHANNELS, ONLY, Site, channel_row};
use super::tables::{self, Change, TRANSACTION_MAX, TableError, TableResult};

/// Attempts at a mark that others are ahead of.
const ATTEMPTS: u32 = 10;

/// How a worker goes about it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// Pretend that each transaction takes this long.
    pub(crate) pause: Duration,
    /// Do not look for blogs again before the channel's row is deleted: DT3, to see what comes of
    /// it.
    pub(crate) forget_second_look: bool,
}

/// Works until told to stop.
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
    /// Steps a to c; the listener does step d when they are done, and keeps the message from other
    /// workers until then.
    async fn handle(&self, message: &Message<String>, ctx: &Context) -> Verdict {
        let channel = &message.body;
        if let Err(error) = check_key(channel) {
            return Verdict::reject(format!("no name of a channel: {error}"));
        }
        let deleted = tokio::select! {
            biased;
            deleted = delete_channel(&self.site, channel, self.manner) => deleted,
            // Somebody else may have the message now, and goes on where this stops.
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

/// Steps a to c. Returns how many blogs were found and deleted.
pub(crate) async fn delete_channel(
    site: &Site,
    channel: &str,
    manner: Manner,
) -> TableResult<usize> {
    let mark = mark_invalid(site, channel).await?;
    let mut blogs = pass(site, channel, manner).await?;
    if !manner.forget_second_look {
        blogs += look_again(site, channel, manner).await?;
    }
    if let Some(tag) = mark {
        // The row that was marked and no other: whoever made the channel valid again meanwhile
        // (412) is seen, and the next attempt begins with the mark.
        match site.tables.delete(CHANNELS, (channel, ONLY), &tag).await {
            Ok(()) | Err(TableError::Missing) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(blogs)
}

/// The second look, from the front and until nothing is found: a blog that was written behind the
/// back of the first pass is gone before the row is.
async fn look_again(site: &Site, channel: &str, manner: Manner) -> TableResult<usize> {
    let mut blogs = 0;
    loop {
        match pass(site, channel, manner).await? {
            0 => return Ok(blogs),
            found => blogs += found,
        }
    }
}

/// Step a: no writer may begin any more. Returns the ETag of the marked row; none when the row is
/// gone, which an earlier attempt has done.
async fn mark_invalid(site: &Site, channel: &str) -> TableResult<Option<String>> {
    for _ in 0..ATTEMPTS {
        let Some(found) = site.channel(channel).await? else {
            return Ok(None);
        };
        if !found.valid {
            return Ok(Some(found.tag));
        }
        let marked = channel_row(channel, false);
        match site.tables.merge(CHANNELS, &marked, &found.tag).await {
            Ok(tag) => return Ok(Some(tag)),
            // Somebody changed it, or this is about our own first try: look again.
            Err(TableError::Changed) => {}
            Err(TableError::Missing) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Err(TableError::Changed)
}

/// Step b: deletes the partition's blogs page by page, a transaction each. Returns how many.
///
/// Like every scan it does not see what is inserted behind it: neither before the place where it
/// is, nor after its last page.
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
                // All or nothing: somebody deleted one of them, so none of the others is. The same
                // page again has fewer rows.
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
