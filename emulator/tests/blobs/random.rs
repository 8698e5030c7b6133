//! Random changes of few blobs: copies that pend, and deletions beside versions.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use proptest::prelude::*;
use smalt::AccountSettings;
use smalt::faults::{Fault, Hold, Rule};

use crate::support::Client;

const HOLD_S: u64 = 10;
const BLOBS: [&str; 3] = ["/box/a", "/box/b", "/box/c"];

/// What the copy that made a blob came to.
#[derive(Clone, Default, PartialEq)]
enum Copied {
    #[default]
    No,
    Pending {
        from: usize,
        ends_s: u64,
        length: usize,
    },
    Over(&'static str),
}

#[derive(Clone, Default)]
struct Known {
    length: usize,
    copied: Copied,
}

#[derive(Default)]
struct Copies {
    now_s: u64,
    blobs: [Known; 3],
}

impl Copies {
    fn advance(&mut self) {
        self.now_s += 4;
        for blob in &mut self.blobs {
            if let Copied::Pending { ends_s, length, .. } = blob.copied
                && ends_s <= self.now_s
            {
                blob.length = length;
                blob.copied = Copied::Over("success");
            }
        }
    }

    fn is_pending(&self, at: usize) -> bool {
        matches!(self.blobs[at].copied, Copied::Pending { .. })
    }

    /// Fails the copies that read from a blob.
    fn changed(&mut self, at: usize) {
        for blob in &mut self.blobs {
            if matches!(blob.copied, Copied::Pending { from, .. } if from == at) {
                blob.copied = Copied::Over("failed");
            }
        }
    }
}

async fn step(client: &Client, known: &mut Copies, (what, at, from): (u8, usize, usize)) {
    let path = BLOBS[at];
    let is_pending = known.is_pending(at);
    match what {
        0 if is_pending => {
            let id = client.head(path).await.header("x-ms-copy-id").to_owned();
            let abort = [("x-ms-copy-action", "abort")];
            let target = format!("{path}?comp=copy&copyid={id}");
            assert_eq!(client.try_("PUT", &target, &abort).await, "204");
            known.blobs[at].copied = Copied::Over("aborted");
        }
        1 => {
            client.advance_s(4);
            known.advance();
        }
        2 if !is_pending => {
            known.changed(at);
            let length = known.blobs[at].length % 7 + 1;
            client.put(path, "x".repeat(length)).await;
            known.blobs[at] = Known {
                length,
                copied: Copied::No,
            };
        }
        3 if !is_pending => {
            known.changed(at);
            let target = format!("{path}?comp=metadata");
            assert_eq!(client.try_("PUT", &target, &[]).await, "200");
        }
        _ if !is_pending && !known.is_pending(from) && at != from => {
            known.changed(at);
            let source = client.url(BLOBS[from]);
            let source = [("x-ms-copy-source", source.as_str())];
            assert_eq!(client.try_("PUT", path, &source).await, "202");
            let copied = Copied::Pending {
                from,
                ends_s: known.now_s + HOLD_S,
                length: known.blobs[from].length,
            };
            known.blobs[at] = Known { length: 0, copied };
        }
        _ => {}
    }
}

async fn copies(steps: Vec<(u8, usize, usize)>) {
    let client = Client::new();
    client.emulator().faults().add(Rule {
        operation: "Blob_StartCopyFromURL".to_owned(),
        resource: String::new(),
        nth: 1,
        times: u64::MAX,
        fault: Fault::PendingCopy(Hold {
            duration_s: Some(HOLD_S),
            ..Hold::default()
        }),
    });
    client.create("box").await;
    let mut known = Copies::default();
    for at in 0..BLOBS.len() {
        step(&client, &mut known, (2, at, 0)).await;
    }
    for one in steps {
        step(&client, &mut known, one).await;
        for (path, blob) in BLOBS.iter().zip(&known.blobs) {
            let status = match blob.copied {
                Copied::No => "",
                Copied::Pending { .. } => "pending",
                Copied::Over(status) => status,
            };
            let head = client.head(path).await;
            let shown = (head.has("x-ms-copy-status")).then(|| head.header("x-ms-copy-status"));
            let length = blob.length.to_string();
            let told = (shown.unwrap_or_default(), head.header("content-length"));
            assert_eq!(told, (status, length.as_str()), "{path} after {one:?}");
        }
        assert_eq!(client.emulator().audit().unwrap().differences, [""; 0]);
    }
}

async fn deletions(versioning: bool, retains: bool, steps: Vec<u8>) {
    let client = Client::of_account(AccountSettings {
        versioning,
        ..AccountSettings::default()
    });
    client.create("box").await;
    if retains {
        let policy = "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>2</Days>\
                      </DeleteRetentionPolicy>";
        let all = format!("<StorageServiceProperties>{policy}</StorageServiceProperties>");
        let path = "/?restype=service&comp=properties";
        assert_eq!(client.send("PUT", path, &[], all).await.status, 202);
    }
    let include = [("x-ms-delete-snapshots", "include")];
    for step in steps {
        match step {
            0..3 => drop(client.put("/box/b", "text").await),
            3 => drop(client.try_("PUT", "/box/b?comp=snapshot", &[]).await),
            4 => drop(client.try_("DELETE", "/box/b", &include).await),
            5 | 6 => drop(client.try_("PUT", "/box/b?comp=undelete", &[]).await),
            7 => client.advance_s(86_400),
            _ => {
                let list = "/box?restype=container&comp=list&include=snapshots";
                let list = client.get(list).await;
                let entries = list.text().matches("<Blob>").count();
                let expected = match list.text().matches("<Snapshot>").count() {
                    snapshots if entries == snapshots => "404 BlobNotFound",
                    0 => "202",
                    _ => "409 SnapshotsPresent",
                };
                assert_eq!(client.try_("DELETE", "/box/b", &[]).await, expected);
            }
        }
        assert_eq!(client.emulator().audit().unwrap().differences, [""; 0]);
    }
}

fn run(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(work);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A copy fails when its source changes, and for no other reason.
    #[test]
    fn pending_copies_end_as_their_sources_allow(
        steps in prop::collection::vec((0..6_u8, 0..3_usize, 0..3_usize), 1..30),
    ) {
        run(copies(steps));
    }

    /// A blob is deleted without its snapshots exactly when a listing shows none.
    #[test]
    fn snapshots_that_are_listed_refuse_a_deletion(
        versioning: bool,
        retains in prop::bool::weighted(0.8),
        steps in prop::collection::vec(0..11_u8, 1..60),
    ) {
        run(deletions(versioning, retains, steps));
    }
}
