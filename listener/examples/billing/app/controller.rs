//! The controller: takes results from their queue, adds them up and stores the sums.
//!
//! One write of the ledger adds several results, under the ETag of the version that was read; only
//! then are their messages deleted. A controller that dies before the write leaves the messages;
//! one that dies after it leaves duplicates, which the ledger recognises. Several controllers may
//! run: the ETag lets only one of them succeed, and the others read again.

use std::future::Future;
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use smalt_listener::QueueListener;
use smalt_listener::handler::{Context, Handler, Message, Verdict};
use smalt_sleeve::port::{CallContext, Conditions, ErrorKind, PutBlob, Tag};
use tokio::sync::{mpsc, oneshot, watch};

use super::batch::PartialSum;
use super::ledger::Ledger;
use super::site::Site;

/// Name of the ledger's blob.
const LEDGER: &str = "ledger.json";
/// Size of the largest ledger.
const LEDGER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Largest number of results of one write.
const TOGETHER: usize = 256;
/// Attempts at one write while other controllers write as well.
const ATTEMPTS: u32 = 10;

/// A result that waits for the ledger, with the channel for the answer.
type Waiting = (PartialSum, oneshot::Sender<Result<(), String>>);

/// Runs until stopped, or until this number of submissions is complete. Returns the ledger.
pub(crate) async fn run(
    site: &Site,
    submissions: Option<u32>,
    shutdown: impl Future<Output = ()> + Send,
) -> anyhow::Result<Ledger> {
    site.prepare().await?;
    let (results, waiting) = mpsc::channel(TOGETHER);
    let (complete, mut completed) = watch::channel(0);
    let keeper = tokio::spawn(keep(site.clone(), waiting, complete));
    let handler = Arc::new(Controller { results });
    let config = site.results_config("controller");
    let storage = Arc::clone(&site.storage);
    let listener = QueueListener::new(config, storage, handler, site.seed)?;
    let enough = async {
        let enough = |complete: &usize| submissions.is_some_and(|all| *complete >= all as usize);
        if completed.wait_for(enough).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let report = listener
        .run_until(async {
            tokio::select! {
                () = shutdown => {}
                () = enough => {}
            }
        })
        .await?;
    tracing::info!(received = report.received, "aggregated");
    // The keeper ends when the handler is dropped with its listener.
    drop(listener);
    keeper.await?;
    Ok(load(site)
        .await?
        .map(|page| page.ledger)
        .unwrap_or_default())
}

struct Controller {
    results: mpsc::Sender<Waiting>,
}

#[async_trait]
impl Handler for Controller {
    async fn handle(&self, message: &Message, _ctx: &Context) -> Verdict {
        let sum: PartialSum = match serde_json::from_slice(&message.body) {
            Ok(sum) => sum,
            Err(error) => return Verdict::reject(format!("not a result: {error}")),
        };
        let (done, booked) = oneshot::channel();
        if self.results.send((sum, done)).await.is_err() {
            return Verdict::retry("the ledger is closed");
        }
        match booked.await {
            Ok(Ok(())) => Verdict::Ok,
            Ok(Err(why)) => Verdict::retry(why),
            Err(_) => Verdict::retry("the ledger is closed"),
        }
    }
}

/// The ledger and its version.
struct Page {
    ledger: Ledger,
    tag: Option<Tag>,
}

/// Books all waiting results together, until no sender is left.
async fn keep(site: Site, mut waiting: mpsc::Receiver<Waiting>, complete: watch::Sender<usize>) {
    let mut page = load(&site).await.unwrap_or_default();
    let tell = |page: &Option<Page>| {
        if let Some(page) = page {
            let _ = complete.send(page.ledger.complete.len());
        }
    };
    tell(&page);
    let mut together = Vec::new();
    while waiting.recv_many(&mut together, TOGETHER).await > 0 {
        let sums: Vec<_> = together.iter().map(|(sum, _)| sum).collect();
        let booked = book(&site, &mut page, &sums).await;
        let booked = booked.map_err(|error| format!("{error:#}"));
        tell(&page);
        for (_, done) in together.drain(..) {
            // The receiver is gone if the handler was cancelled.
            let _ = done.send(booked.clone());
        }
    }
}

/// Adds the sums to the ledger durably.
async fn book(site: &Site, page: &mut Option<Page>, sums: &[&PartialSum]) -> anyhow::Result<()> {
    for _ in 0..ATTEMPTS {
        let known = match page.take() {
            Some(known) => known,
            None => load(site).await?.unwrap_or(Page {
                ledger: Ledger::default(),
                tag: None,
            }),
        };
        let mut ledger = known.ledger;
        for sum in sums {
            ledger.add(sum);
        }
        let conditions = match &known.tag {
            Some(tag) => Conditions::matching(tag),
            None => Conditions::absent(),
        };
        let put = PutBlob {
            content_type: Some("application/json".to_owned()),
            conditions,
            ..PutBlob::default()
        };
        let (cx, blob) = (CallContext::default(), site.blob(LEDGER));
        let content = Bytes::from(serde_json::to_vec(&ledger)?);
        match site.storage.put_blob(&cx, &blob, content, &put).await {
            Ok(written) => {
                let tag = Some(written.etag);
                *page = Some(Page { ledger, tag });
                return Ok(());
            }
            // The blob may be another controller's version, or the result of this write; the next
            // read shows which.
            Err(error) => match error.kind {
                ErrorKind::ConditionNotMet
                | ErrorKind::AlreadyExists
                | ErrorKind::OutcomeUnknown => {}
                _ => return Err(error).context("cannot write the ledger"),
            },
        }
    }
    anyhow::bail!("the ledger changed during every attempt")
}

async fn load(site: &Site) -> anyhow::Result<Option<Page>> {
    let (cx, blob) = (CallContext::default(), site.blob(LEDGER));
    match site.storage.get_blob(&cx, &blob, LEDGER_BYTES_MAX).await {
        Ok(got) => Ok(Some(Page {
            ledger: serde_json::from_slice(&got.content).context("the ledger")?,
            tag: Some(got.properties.etag),
        })),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("cannot read the ledger"),
    }
}

/// Reads the current ledger.
pub(crate) async fn ledger(site: &Site) -> anyhow::Result<Ledger> {
    let page = load(site).await?;
    Ok(page.map(|page| page.ledger).unwrap_or_default())
}
