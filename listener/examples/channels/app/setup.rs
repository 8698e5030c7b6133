//! Creates tables, queue, channels and blogs, and requests the deletion of channels.

use std::time::Duration;

use anyhow::Context as _;
use smalt_listener::payload::{SendError, SendOptions};
use smalt_sleeve::port::{CallContext, MessageTtl};

use super::plan::Plan;
use super::site::{BLOGS, CHANNELS, QUEUE, Site, WRITERS, channel_row};
use super::tables::{Change, TRANSACTION_MAX};

const ATTEMPTS: u32 = 20;

/// Creates what the plan describes. Runs before all other roles; after a crash it starts again.
pub(crate) async fn setup(site: &Site, plan: &Plan) -> anyhow::Result<()> {
    for table in [CHANNELS, BLOGS, WRITERS] {
        site.tables.create_table(table).await.context(table)?;
    }
    let cx = CallContext::default();
    site.storage.create_queue(&cx, QUEUE).await?;
    for name in plan.channels() {
        site.tables.put(CHANNELS, &channel_row(&name, true)).await?;
        for blogs in plan.blogs(&name).chunks(TRANSACTION_MAX) {
            let puts: Vec<_> = blogs.iter().map(|blog| Change::Put(blog.row())).collect();
            site.tables.transact(BLOGS, &puts).await?;
        }
    }
    Ok(())
}

/// Requests the deletion of the plan's channels. A message that is put twice does no harm.
pub(crate) async fn request(site: &Site, plan: &Plan) -> anyhow::Result<()> {
    let sender = site.sender()?;
    // A request must not expire before a worker processes it.
    let options = SendOptions {
        ttl: MessageTtl::Never,
        ..SendOptions::default()
    };
    for name in plan.requested() {
        for attempt in 1..=ATTEMPTS {
            match sender.send(name.as_bytes(), options).await {
                Ok(_) => break,
                Err(SendError::Unknown(_)) if attempt < ATTEMPTS => {}
                Err(error) => return Err(error).context(name),
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    Ok(())
}
