//! The writer: writes blogs into channels, one after the other, while channels are deleted.
//!
//! Each blog has a number that determines its channel and key. The number is stored before the blog
//! is started and stays until it is finished: a writer that dies starts again with the same blog,
//! and so removes what its earlier run could not.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::plan::{Blog, Plan};
use super::site::{BLOGS, ONLY, Site, WRITERS};
use super::tables::{Row, TableError, TableResult, row};

/// The result of writing a blog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The blog exists, in a channel that was valid after the insert.
    Stands,
    /// The channel was not valid.
    Refused,
    /// The channel became invalid meanwhile, and the blog was removed.
    TakenBack,
}

/// Writes all blogs of the writer that are not yet written, with a pause after each. Returns the
/// number of blogs that were removed again.
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

/// Writes one blog: checks that the channel is valid, inserts, and checks again.
///
/// An earlier run may have inserted the blog already. An insert that finds the blog continues; if
/// the channel is not valid at first, the blog is removed.
pub(crate) async fn write(site: &Site, blog: &Blog) -> TableResult<Written> {
    if !site.may_write(&blog.channel).await? {
        take_back(site, blog).await?;
        return Ok(Written::Refused);
    }
    match site.tables.insert(BLOGS, &blog.row()).await {
        Ok(()) | Err(TableError::Exists) => {}
        Err(error) => return Err(error),
    }
    if site.may_write(&blog.channel).await? {
        return Ok(Written::Stands);
    }
    take_back(site, blog).await?;
    Ok(Written::TakenBack)
}

/// Removes the writer's own blog, which the deletion may already have removed.
async fn take_back(site: &Site, blog: &Blog) -> TableResult<()> {
    match site.tables.delete(BLOGS, blog.keys(), "*").await {
        Ok(()) | Err(TableError::Missing) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the number of a writer's current blog.
pub(crate) fn next(progress: &Row) -> u32 {
    let next = progress.get("Next").and_then(Json::as_u64);
    next.and_then(|next| u32::try_from(next).ok()).unwrap_or(0)
}
