//! Tests of films that workers encode in parts: each film has a stream of events in a leased blob,
//! and once the film is done, the sweeper archives its events and removes its parts.
//!
//! `cargo run -p smalt-harness --example film_encoder`,
//! `cargo test -p smalt-harness --example film_encoder`.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use azure_core::Bytes;
use azure_core::http::StatusCode;
use azure_storage_blob::models::{
    AppendBlobClientAppendBlockOptions, BlobClientAcquireLeaseResultHeaders as _,
    BlobClientSetMetadataOptions,
};
use azure_storage_blob::{BlobClient, BlobContainerClient};
use azure_storage_queue::QueueClient;
use azure_storage_queue::models::{QueueClientReceiveMessagesOptions, QueueMessage};
use smalt_harness::testing::TestAccount;
use smalt_sleeve::{Account, AzureStorage, Settings, TokioClock};
use smalt_sweeper::{
    Accounts, DeadConfig, Outcome as Swept, Sweeper, SweeperConfig, SweptContainer,
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

// ---- somebody's own code -------------------------------------------------------------------

/// How long a worker may take for one part.
const PART_S: i32 = 60;
const LEASE_S: i32 = 15;

/// Takes orders of films, and encodes them.
struct Studio {
    jobs: QueueClient,
    finished: QueueClient,
    films: BlobContainerClient,
}

impl Studio {
    /// Stores a film's parts and its stream of events, then puts one job per part.
    async fn order(&self, film: &str, parts: usize) -> Outcome {
        for part in 0..parts {
            let raw = Bytes::from(format!("{film} part {part}"));
            let blob = self.films.blob_client(&format!("{film}/raw/{part}"));
            blob.upload(raw.into(), None).await?;
        }
        self.events(film).append_blob_client().create(None).await?;
        for part in 0..parts {
            send(&self.jobs, format!("{film} {part} {parts}")).await?;
        }
        Ok(())
    }

    /// Encodes parts until no job is left. A job is deleted after its part is in the stream.
    async fn work_off(&self) -> Outcome {
        loop {
            let options = QueueClientReceiveMessagesOptions {
                visibility_timeout: Some(PART_S),
                ..Default::default()
            };
            let jobs = self.jobs.receive_messages(Some(options)).await?;
            let Some(job) = jobs.into_model()?.items.unwrap_or_default().pop() else {
                return Ok(());
            };
            let text = job.message_text.unwrap_or_default();
            let [film, part, parts] = text.split(' ').collect::<Vec<_>>()[..] else {
                return Err("not a job".into());
            };
            self.encode(film, part).await?;
            self.report(film, part, parts.parse()?).await?;
            let (id, receipt) = (job.message_id, job.pop_receipt);
            let (id, receipt) = (id.ok_or("no id")?, receipt.ok_or("no receipt")?);
            match self.jobs.delete_message(&id, &receipt, None).await {
                // Another worker has the job, because this one took too long.
                Err(error) if error.http_status() == Some(StatusCode::NotFound) => {}
                deleted => drop(deleted?),
            }
        }
    }

    /// Encodes one part. A second time makes the same blob.
    async fn encode(&self, film: &str, part: &str) -> Outcome {
        let raw = self.films.blob_client(&format!("{film}/raw/{part}"));
        let raw = raw.download(None).await?.body.collect().await?;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let encoded = Bytes::from(raw.to_ascii_uppercase());
        let blob = self.films.blob_client(&format!("{film}/encoded/{part}"));
        blob.upload(encoded.into(), None).await?;
        Ok(())
    }

    /// Appends the event of a part once, under the lease of the stream. Whoever completes the film
    /// tells the user, and leaves the rest to the sweeper.
    async fn report(&self, film: &str, part: &str, parts: usize) -> Outcome {
        let stream = self.events(film);
        let lease = loop {
            match stream.acquire_lease(LEASE_S, None).await {
                Ok(lease) => break lease.lease_id()?.ok_or("a lease without id")?,
                Err(error) if error.http_status() == Some(StatusCode::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        let events = append(&stream, &lease, &format!("encoded {part}")).await?;
        if events.lines().filter(|line| *line != "finished").count() == parts {
            if !events.ends_with("finished\n") {
                send(&self.finished, film.to_owned()).await?;
                append(&stream, &lease, "finished").await?;
            }
            for part in 0..parts {
                let raw = self.films.blob_client(&format!("{film}/raw/{part}"));
                expire(&raw, None, &[("TimeToLive", "P1D")]).await?;
            }
            let kept = [("TimeToLive", "P1D"), ("DeadBlobContainer", "archive")];
            expire(&stream, Some(lease.clone()), &kept).await?;
        }
        stream.release_lease(lease, None).await?;
        Ok(())
    }

    fn events(&self, film: &str) -> BlobClient {
        self.films.blob_client(&format!("{film}/events"))
    }
}

/// Appends a line unless the stream has it, and returns the stream. The position finds an append
/// whose answer was lost.
async fn append(stream: &BlobClient, lease: &str, line: &str) -> Outcome<String> {
    loop {
        let events = stream.download(None).await?.body.collect().await?;
        let events = String::from_utf8(events.to_vec())?;
        if events.lines().any(|there| there == line) {
            return Ok(events);
        }
        let options = AppendBlobClientAppendBlockOptions {
            append_position: Some(events.len().try_into()?),
            lease_id: Some(lease.to_owned()),
            ..Default::default()
        };
        let block = Bytes::from(format!("{line}\n"));
        let length = block.len() as u64;
        let client = stream.append_blob_client();
        match client
            .append_block(block.into(), length, Some(options))
            .await
        {
            Ok(_) => {}
            Err(e) if e.http_status() == Some(StatusCode::PreconditionFailed) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

async fn expire(blob: &BlobClient, lease_id: Option<String>, metadata: &[(&str, &str)]) -> Outcome {
    let pairs = metadata
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let options = BlobClientSetMetadataOptions {
        lease_id,
        ..Default::default()
    };
    blob.set_metadata(&pairs.collect::<HashMap<_, _>>(), Some(options))
        .await?;
    Ok(())
}

async fn send(queue: &QueueClient, text: String) -> Outcome {
    let message_text = Some(text);
    queue
        .send_message(QueueMessage { message_text }.try_into()?, None)
        .await?;
    Ok(())
}

// ---- its tests -----------------------------------------------------------------------------

async fn studio(account: &TestAccount) -> Outcome<Studio> {
    Ok(Studio {
        jobs: account.queue("jobs").await?,
        finished: account.queue("finished").await?,
        films: account.container("films").await?,
    })
}

async fn read(account: &TestAccount, container: &str, name: &str) -> Outcome<String> {
    let container = account.blobs()?.blob_container_client(container);
    let body = container.blob_client(name).download(None).await?.body;
    Ok(String::from_utf8(body.collect().await?.to_vec())?)
}

/// Sweeps the films once. Returns how many blobs were deleted and moved.
async fn sweep(account: &TestAccount) -> Outcome<(u64, u64)> {
    let settings = Settings {
        clock: Arc::new(TokioClock::starting_at(account.now())),
        ..Settings::default()
    };
    let named = Account::from_connection_string("UseDevelopmentStorage=true")?;
    let storage = AzureStorage::open(named, account.transport(), settings)?;
    let mut config = SweeperConfig {
        containers: vec![SweptContainer {
            account: "default".to_owned(),
            container: "films".to_owned(),
            prefix: String::new(),
        }],
        dead: DeadConfig {
            account: Some("default".to_owned()),
            ..DeadConfig::default()
        },
        ..SweeperConfig::default()
    };
    config.policy.allow = vec!["archive".to_owned()];
    let accounts = Accounts::new().with("default", Arc::new(storage));
    let finished = Sweeper::new(config, accounts, 5)?.once().await;
    match finished.error {
        Some(error) => Err(error.into()),
        None => Ok((
            finished.report.count(Swept::Deleted),
            finished.report.count(Swept::Moved),
        )),
    }
}

/// Two workers encode two films of three parts. The first one dies after `life`.
async fn season(account: &TestAccount, life: Duration) -> Outcome {
    let studio = studio(account).await?;
    for film in ["nosferatu", "metropolis"] {
        studio.order(film, 3).await?;
    }
    let (_, worked) = tokio::join!(
        tokio::time::timeout(life, studio.work_off()),
        studio.work_off()
    );
    worked?;
    tokio::time::sleep(Duration::from_secs(61)).await;
    studio.work_off().await?;
    for film in ["nosferatu", "metropolis"] {
        let events = read(account, "films", &format!("{film}/events")).await?;
        let mut lines: Vec<_> = events.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["encoded 0", "encoded 1", "encoded 2", "finished"]);
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Outcome {
    let account = TestAccount::open()?;
    season(&account, Duration::from_secs(12)).await?;
    tokio::time::sleep(Duration::from_secs(25 * 3_600)).await;
    let (deleted, moved) = sweep(&account).await?;
    println!("two films encoded; a day later {deleted} parts deleted, {moved} streams archived");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S34, Q24: whenever a worker dies, every part is in the stream once, the user is told, and a
    /// day later the stream is archived and the parts are gone.
    #[tokio::test(start_paused = true)]
    async fn s34_q24_films_are_finished_and_cleaned_up_although_a_worker_dies() -> Outcome {
        for life_ms in (500..20_000).step_by(1_500) {
            let account = TestAccount::open()?;
            account.fault("AppendBlob_AppendBlock").nth(2).answer_lost();
            account.fault("MessageId_Delete").nth(3).answer_lost();
            season(&account, Duration::from_millis(life_ms)).await?;
            account.assert_faults_fired();
            let told = account.messages("finished");
            for film in ["nosferatu", "metropolis"] {
                assert!(told.standing_now().any(|message| message.text == film));
            }
            assert_eq!(sweep(&account).await?, (0, 0));
            tokio::time::sleep(Duration::from_secs(25 * 3_600)).await;
            assert_eq!(sweep(&account).await?, (6, 2), "{life_ms}");
            let archived = read(&account, "archive", "metropolis/events").await?;
            assert!(archived.ends_with("finished\n"), "{archived}");
            let encoded = read(&account, "films", "metropolis/encoded/2").await?;
            assert_eq!(encoded, "METROPOLIS PART 2");
        }
        Ok(())
    }

    /// Without the position an append is repeated after a lost answer.
    #[tokio::test(start_paused = true)]
    async fn an_append_without_a_position_is_repeated() -> Outcome {
        let account = TestAccount::open()?;
        let stream = account.container("films").await?.blob_client("events");
        stream.append_blob_client().create(None).await?;
        account.fault("AppendBlob_AppendBlock").answer_lost();
        let client = stream.append_blob_client();
        client
            .append_block(Bytes::from("a\n").into(), 2, None)
            .await?;
        assert_eq!(read(&account, "films", "events").await?, "a\na\n");
        Ok(())
    }
}
