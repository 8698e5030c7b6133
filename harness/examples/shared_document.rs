//! Tests of a document that several writers change: no change may be written over unseen.
//!
//! `cargo run -p smalt-harness --example shared_document`,
//! `cargo test -p smalt-harness --example shared_document`.

use std::error::Error;

use azure_core::Bytes;
use azure_core::http::StatusCode;
use azure_storage_blob::BlobClient;
use azure_storage_blob::models::BlockBlobClientUploadOptions;
use smalt_harness::testing::TestAccount;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

// ---- somebody's own code -------------------------------------------------------------------

/// A list of names in a blob, one a line.
struct Members {
    blob: BlobClient,
    /// Whether a write names the version that was read.
    conditional: bool,
}

impl Members {
    /// Adds a name, and reads again when somebody else was faster. Adding twice is adding once:
    /// after a lost answer nobody knows.
    async fn add(&self, name: &str) -> Outcome {
        loop {
            let read = self.blob.download(None).await?;
            let seen = read.properties.etag.clone();
            let text = String::from_utf8(read.body.collect().await?.to_vec())?;
            if text.lines().any(|line| line == name) {
                return Ok(());
            }
            let options = BlockBlobClientUploadOptions {
                if_match: seen.filter(|_| self.conditional),
                ..Default::default()
            };
            let text = Bytes::from(format!("{text}{name}\n"));
            // Others read meanwhile.
            tokio::task::yield_now().await;
            match self.blob.upload(text.into(), Some(options)).await {
                Ok(_) => return Ok(()),
                Err(e) if e.http_status() == Some(StatusCode::PreconditionFailed) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

// ---- its tests -----------------------------------------------------------------------------

/// Three writers at once, and an answer that is lost. What stands in the document afterwards.
async fn meeting(account: &TestAccount, conditional: bool) -> Outcome<Vec<String>> {
    let team = account.container("team").await?;
    let blob = team.blob_client("members.txt");
    blob.upload(Bytes::new().into(), None).await?;
    account
        .fault("BlockBlob_Upload")
        .on("team/members.txt")
        .nth(2)
        .answer_lost();
    let writer = || Members {
        blob: team.blob_client("members.txt"),
        conditional,
    };
    let (one, two, three) = (writer(), writer(), writer());
    let (a, b, c) = tokio::join!(one.add("ada"), two.add("barbara"), three.add("grace"));
    a?;
    b?;
    c?;
    let body = blob.download(None).await?.body.collect().await?;
    let text = String::from_utf8(body.to_vec())?;
    let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
    names.sort();
    Ok(names)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Outcome {
    let account = TestAccount::open()?;
    let names = meeting(&account, true).await?;
    account.assert_faults_fired();
    account.assert_no_blind_write("team/members.txt");
    println!("three writers and a lost answer: {}", names.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nobody_is_forgotten() -> Outcome {
        let account = TestAccount::open()?;
        let names = meeting(&account, true).await?;
        account.assert_faults_fired();
        account.assert_no_blind_write("team/members.txt");
        assert_eq!(names, ["ada", "barbara", "grace"]);
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "team/members.txt was overwritten without a version check")]
    async fn a_write_without_a_condition_is_caught() {
        let account = TestAccount::open().unwrap();
        meeting(&account, false).await.unwrap();
        account.assert_no_blind_write("team/members.txt");
    }
}
