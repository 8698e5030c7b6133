//! The rival: writes blogs into channels, one after the other, while channels are deleted.
//!
//! Each blog has a number, and its channel and key follow from that. The number is written down
//! before the blog is begun and stays until it is over: a writer that dies begins with the same
//! blog again, and so takes back what its earlier life had no time to.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::plan::{Blog, Plan};
use super::site::{BLOGS, ONLY, Site, WRITERS};
use super::tables::{Row, TableError, TableResult, row};

/// What became of a blog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It stands, in a channel that was valid after it.
    Stands,
    /// The channel was not valid.
    Refused,
    /// The channel became invalid meanwhile: the blog was taken back.
    TakenBack,
}

/// Writes all blogs of the writer that are not yet written, with a pause in between. Returns how
/// many of them were taken back.
pub(crate) async fn run(
    site: &Site,
    plan: &Plan,
    writer: &str,
    pause: Duration,
) -> anyhow::Result<u32> {
    let first = site.tables.get(WRITERS, (writer, ONLY)).await?;
    let first = first.map_or(0, |(progress, _)| next(&progress));
    let mut taken_back = 0;
    for number in first..plan.written {
        let written = write(site, &plan.written(writer, number)).await?;
        taken_back += u32::from(written == Written::TakenBack);
        let progress = json!({ "PartitionKey": writer, "RowKey": ONLY, "Next": number + 1 });
        site.tables.put(WRITERS, &row(progress)).await?;
        tokio::time::sleep(pause).await;
    }
    Ok(taken_back)
}

/// Writes one blog: looks whether the channel is valid, inserts, and looks again.
///
/// What is found at the first look may be of an earlier life: an insert that finds the blog there
/// goes on, and where the channel is not valid the blog is taken back before it is begun.
pub(crate) async fn write(site: &Site, blog: &Blog) -> TableResult<Written> {
    if !may_write(site, blog).await? {
        take_back(site, blog).await?;
        return Ok(Written::Refused);
    }
    match site.tables.insert(BLOGS, &blog.row()).await {
        Ok(()) | Err(TableError::Exists) => {}
        Err(error) => return Err(error),
    }
    if may_write(site, blog).await? {
        return Ok(Written::Stands);
    }
    take_back(site, blog).await?;
    Ok(Written::TakenBack)
}

async fn may_write(site: &Site, blog: &Blog) -> TableResult<bool> {
    let channel = site.channel(&blog.channel).await?;
    Ok(channel.is_some_and(|channel| channel.valid))
}

/// Removes the writer's own blog; the deletion may have been quicker.
async fn take_back(site: &Site, blog: &Blog) -> TableResult<()> {
    match site.tables.delete(BLOGS, blog.keys(), "*").await {
        Ok(()) | Err(TableError::Missing) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The number of the blog that a writer is at.
pub(crate) fn next(progress: &Row) -> u32 {
    let next = progress.get("Next").and_then(Json::as_u64);
    next.and_then(|next| u32::try_from(next).ok()).unwrap_or(0)
}
