//! The checks of the harness at the size of `cargo test`, and workers in the worlds of their
//! examples. One program, because each more is linked with everything.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use smalt::{Emulator, Timestamp};
use smalt_harness::testing::TestAccount;
use smalt_sleeve::port::Storage;
use smalt_sleeve::{Account, AzureStorage, Settings};

mod billing;
mod bursts;
mod channels;
mod conform;
mod crash;
mod fuzz;
mod gridwich;
mod histories;
mod partitions;
mod payloads;
mod replay;
mod scenarios;
mod soak;
mod tokens;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A clock for a client that shows the service's time, also after it is moved forward.
#[derive(Debug)]
struct ServiceTime(Emulator);

impl smalt_sleeve::Clock for ServiceTime {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// Opens a client of the account.
fn storage(account: &TestAccount, seed: u64) -> Outcome<Arc<dyn Storage>> {
    let settings = Settings {
        clock: Arc::new(ServiceTime(account.emulator().clone())),
        seed: Some(seed),
        ..Settings::default()
    };
    let named = Account::from_connection_string("UseDevelopmentStorage=true")?;
    let storage = AzureStorage::open(named, account.transport(), settings)?;
    Ok(Arc::new(storage))
}
