//! The initiator: splits submissions into chunks and puts them into the work queues.
//!
//! After each submission it stores its progress. After a crash it starts the unfinished submission
//! again, with the same chunks under the same numbers, which the ledger counts once.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use smalt_listener::partition::PartitionSender;
use smalt_listener::payload::SendOptions;
use smalt_sleeve::port::{CallContext, ErrorKind, PutBlob};

use super::batch::{Chunk, Plan};
use super::site::Site;

/// Chunks that are put concurrently.
const AT_ONCE: usize = 8;
const ATTEMPTS: u32 = 20;
/// Name of the blob with the initiator's progress.
const PROGRESS: &str = "initiator.json";
/// Enough for a number.
const PROGRESS_BYTES_MAX: u64 = 64;

/// Puts all submissions that are not yet put, with a pause after each.
pub(crate) async fn run(site: &Site, plan: &Plan, pause: Duration) -> anyhow::Result<()> {
    site.prepare().await?;
    let sender = site.work_sender()?;
    for submission in progress(site).await?..plan.submissions {
        let puts = stream::iter(plan.chunks(submission))
            .map(|chunk| put(&sender, chunk))
            .buffer_unordered(AT_ONCE);
        puts.try_collect::<Vec<()>>().await?;
        advance(site, submission + 1).await?;
        tracing::info!(submission, "submitted");
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

/// Puts a chunk until the put is confirmed; a second copy does no harm.
async fn put(sender: &PartitionSender, chunk: Chunk) -> anyhow::Result<()> {
    let key = format!("{}/{}", chunk.submission, chunk.number);
    let body = serde_json::to_vec(&chunk)?;
    let mut attempts = 0;
    loop {
        let sent = sender
            .send(key.as_bytes(), &body, SendOptions::default())
            .await;
        attempts += 1;
        match sent {
            Ok(_) => return Ok(()),
            Err(error) if attempts >= ATTEMPTS => return Err(error).context("a chunk"),
            Err(error) => tracing::warn!(key, %error, "put again"),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Returns the first submission that is not yet put.
async fn progress(site: &Site) -> anyhow::Result<u32> {
    let cx = CallContext::default();
    let blob = site.blob(PROGRESS);
    match site.storage.get_blob(&cx, &blob, PROGRESS_BYTES_MAX).await {
        Ok(got) => Ok(serde_json::from_slice(&got.content)?),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Stores the progress. There is one initiator; a lost answer is made up for by the next
/// submission.
async fn advance(site: &Site, next: u32) -> anyhow::Result<()> {
    let (cx, blob) = (CallContext::default(), site.blob(PROGRESS));
    let (content, put) = (Bytes::from(next.to_string()), PutBlob::default());
    match site.storage.put_blob(&cx, &blob, content, &put).await {
        Err(error) if !error.is_transient() => Err(error.into()),
        _ => Ok(()),
    }
}
