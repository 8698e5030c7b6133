//! The processor: computes chunks, several at a time on several threads, and puts what comes out
//! into the queue of results. Any number of these processes share the work.
//!
//! The result is put before the chunk is deleted: a processor that dies in between leaves the chunk
//! to another one, and its result comes twice.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use smalt_listener::handler::{Context, Handler, Message, Verdict};
use smalt_listener::partition::PartitionedListener;
use smalt_listener::payload::{SendOptions, Sender};

use super::batch::{self, Chunk};
use super::site::Site;

/// Works until told to stop; each chunk takes `work` at least.
pub(crate) async fn run(
    site: &Site,
    work: Duration,
    shutdown: impl Future<Output = ()> + Send,
) -> anyhow::Result<()> {
    site.prepare().await?;
    let handler = Arc::new(Processor {
        results: site.results_sender()?,
        work,
    });
    let config = site.work_config("processor");
    let listener = PartitionedListener::new(site.work()?, config, handler, site.seed)?;
    let reports = listener.run_until(shutdown).await?;
    for (queue, report) in reports {
        tracing::info!(queue, received = report.received, "processed");
    }
    Ok(())
}

struct Processor {
    results: Sender,
    work: Duration,
}

#[async_trait]
impl Handler for Processor {
    async fn handle(&self, message: &Message, _ctx: &Context) -> Verdict {
        let chunk: Chunk = match serde_json::from_slice(&message.body) {
            Ok(chunk) => chunk,
            Err(error) => return Verdict::reject(format!("not a chunk: {error}")),
        };
        let Ok(body) = serde_json::to_vec(&batch::compute(&chunk)) else {
            return Verdict::reject("sums that cannot be written");
        };
        tokio::time::sleep(self.work).await;
        match self.results.send(&body, SendOptions::default()).await {
            Ok(_) => Verdict::Ok,
            // It may have been put: then the ledger sees it twice, and counts it once.
            Err(error) => Verdict::retry(error.to_string()),
        }
    }
}
