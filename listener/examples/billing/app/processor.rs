//! The processor: computes chunks, several at once on several threads, and puts the results into
//! the queue of results. Any number of these processes share the work.
//!
//! The result is put before the chunk is deleted: if a processor dies in between, another one
//! processes the chunk again, and its result arrives twice.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use smalt_listener::handler::{Context, Handler, Message, Verdict};
use smalt_listener::partition::PartitionedListener;
use smalt_listener::payload::{SendOptions, Sender};

use super::batch::{self, Chunk};
use super::site::Site;

/// Runs until stopped; each chunk takes at least `work`.
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
            return Verdict::reject("cannot serialise the sums");
        };
        tokio::time::sleep(self.work).await;
        match self.results.send(&body, SendOptions::default()).await {
            Ok(_) => Verdict::Ok,
            // The result may have been put; the ledger counts a second one only once.
            Err(error) => Verdict::retry(error.to_string()),
        }
    }
}
