//! Tests of a leader by lease: never two at once, even if one of them cannot renew.
//!
//! `cargo run -p smalt-harness --example leader`, `cargo test -p smalt-harness --example leader`.

use std::error::Error;
use std::time::Duration;

use azure_core::Bytes;
use azure_storage_blob::BlobClient;
use azure_storage_blob::models::BlobClientAcquireLeaseResultHeaders as _;
use smalt_harness::testing::{LeasedSection, TestAccount};
use tokio::time::Instant;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

// ---- somebody's own code -------------------------------------------------------------------

/// How long a lease lasts without renewal.
const LEASE: Duration = Duration::from_secs(15);
/// What is left of it when no new step is begun.
const MARGIN: Duration = Duration::from_secs(5);

/// Does steps as long as it leads.
struct Leader {
    lock: BlobClient,
    /// Whether it looks at the clock before each step.
    careful: bool,
}

impl Leader {
    /// Leads for `steps` steps, or until the lease is lost. How many were done.
    async fn lead(&self, steps: usize, step: &impl AsyncFn(&str)) -> Outcome<usize> {
        let seconds = i32::try_from(LEASE.as_secs())?;
        let mut granted = Instant::now();
        let Ok(lease) = self.lock.acquire_lease(seconds, None).await else {
            return Ok(0);
        };
        let id = lease.lease_id()?.ok_or("a lease without id")?;
        for done in 0..steps {
            // Counted from before the request: the service's time cannot have begun earlier.
            let asked = Instant::now();
            if self.lock.renew_lease(id.clone(), None).await.is_ok() {
                granted = asked;
            }
            if self.careful && granted.elapsed() + MARGIN > LEASE {
                return Ok(done);
            }
            step(&id).await;
        }
        // Whether it is released now or runs out: it is over.
        let _ = self.lock.release_lease(id, None).await;
        Ok(steps)
    }
}

// ---- its tests -----------------------------------------------------------------------------

/// Two candidates for one lock. The first one leads until the service refuses its renewals, for
/// longer than the lease lasts.
async fn rivals(account: &TestAccount, careful: bool) -> Outcome<LeasedSection> {
    let locks = account.container("locks").await?;
    let lock = || locks.blob_client("leader");
    lock().upload(Bytes::new().into(), None).await?;
    let section = account.leased_section("locks/leader");
    account
        .fault("Blob_RenewLease")
        .nth(3)
        .times(20)
        .server_busy(None);
    let step = async |id: &str| {
        let inside = section.enter(id);
        tokio::time::sleep(Duration::from_secs(4)).await;
        drop(inside);
    };
    let first = Leader {
        lock: lock(),
        careful,
    };
    let second = Leader {
        lock: lock(),
        careful,
    };
    let follower = async {
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            if second.lead(2, &step).await? > 0 {
                return Outcome::Ok(());
            }
        }
    };
    let (led, followed) = tokio::join!(first.lead(8, &step), follower);
    led?;
    followed?;
    Ok(section)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Outcome {
    let account = TestAccount::open()?;
    let section = rivals(&account, true).await?;
    section.assert_never_held_twice();
    println!("two candidates, and renewals that are refused: never two inside");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_careful_leader_stops_in_time() -> Outcome {
        let account = TestAccount::open()?;
        let section = rivals(&account, true).await?;
        account.assert_faults_fired();
        section.assert_never_held_twice();
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "the lease of locks/leader")]
    async fn a_leader_that_ignores_its_renewals_is_caught() {
        let account = TestAccount::open().unwrap();
        let section = rivals(&account, false).await.unwrap();
        section.assert_never_held_twice();
    }
}
