//! Two accounts of one service in this process, the way to them, and what an event subscription of
//! both delivers to a queue.

use std::error::Error;
use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use smalt::{Clock, Destination, Emulator, Subscription};
use smalt_harness::wire::in_process;
use smalt_protocol::Timestamp;
use smalt_protocol::signing::AccountKey;
use smalt_sleeve::port::{CallContext, Storage as _};
use smalt_sleeve::{
    Account, Accounts, AzureStorage, Credential, FnTransport, Settings, TokioClock,
};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The account with the films.
pub(crate) const LIBRARY: &str = "library";
/// The account in which films are encoded.
pub(crate) const ENCODER: &str = "encoder";
const KEY: &str = "c21hbHQgZ3JpZHdpY2g=";
/// The subscription, and its queue in the account of films.
const EVENTS: &str = "events";
const A_WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);
const START_UNIX_S: u64 = 1_795_255_200;

/// What happens to one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fate {
    /// How long it is on its way.
    pub(crate) delay: Duration,
    /// Whether the service executes it.
    pub(crate) executed: bool,
    /// Whether the client gets the answer; the connection breaks otherwise.
    pub(crate) answered: bool,
    /// Whether the client lives; it waits for ever otherwise.
    pub(crate) alive: bool,
}

pub(crate) const HEALTHY: Fate = Fate {
    delay: Duration::ZERO,
    executed: true,
    answered: true,
    alive: true,
};

/// The service, and an outside system that subscribes to its events.
pub(crate) struct World {
    pub(crate) emulator: Emulator,
    outside: AzureStorage,
    delivered: Mutex<Vec<Vec<u8>>>,
}

impl World {
    pub(crate) async fn open(seed: u64) -> Outcome<World> {
        let key = AccountKey::parse(KEY).ok_or("the key is not Base64")?;
        let emulator = Emulator::builder()
            .clock(Clock::tokio(start()))
            .seed(seed)
            .account(LIBRARY, key.clone())
            .account(ENCODER, key)
            .open()?;
        let outside = storage(&emulator, LIBRARY, seed, || HEALTHY)?;
        let queue = Destination::Queue {
            account: LIBRARY.to_owned(),
            queue: EVENTS.to_owned(),
        };
        outside
            .create_queue(&CallContext::default(), EVENTS)
            .await?;
        emulator.subscribe(EVENTS, Subscription::to(queue)).await?;
        Ok(World {
            emulator,
            outside,
            delivered: Mutex::default(),
        })
    }

    /// Opens both accounts for one process, to whose requests `fate` says what happens by number.
    pub(crate) fn accounts(
        &self,
        seed: u64,
        fate: impl Fn(usize) -> Fate + Send + Sync + 'static,
    ) -> Outcome<Accounts> {
        let (sent, fate) = (Arc::new(AtomicUsize::new(0)), Arc::new(fate));
        let fate = move || fate(sent.fetch_add(1, Ordering::Relaxed));
        let open = |name| storage(&self.emulator, name, seed, fate.clone());
        [LIBRARY, ENCODER].into_iter().map(open).collect()
    }

    /// Returns every event so far, as the queue of the subscription delivers it.
    pub(crate) async fn events(&self) -> Outcome<Vec<Vec<u8>>> {
        self.emulator.deliver_events().await?;
        loop {
            let cx = CallContext::default();
            let page = self.outside.get_messages(&cx, EVENTS, 32, A_WEEK).await?;
            let texts = page.messages.iter().map(|it| BASE64.decode(&it.text));
            let texts: Vec<_> = texts.collect::<Result<_, _>>()?;
            let mut delivered = self
                .delivered
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if texts.is_empty() {
                return Ok(delivered.clone());
            }
            delivered.extend(texts);
        }
    }
}

/// Opens an account over a way on which `fate` says what happens to each request.
fn storage(
    emulator: &Emulator,
    account: &str,
    seed: u64,
    fate: impl Fn() -> Fate + Send + Sync + 'static,
) -> Outcome<AzureStorage> {
    let way = {
        let emulator = emulator.clone();
        FnTransport::new(move |request| {
            let (fate, emulator) = (fate(), emulator.clone());
            async move {
                tokio::time::sleep(fate.delay).await;
                let answer = match fate.executed {
                    true => in_process::call(&emulator, request).await,
                    false => Err(io::ErrorKind::ConnectionReset.into()),
                };
                match fate {
                    Fate { alive: false, .. } => pending().await,
                    Fate {
                        answered: false, ..
                    } => Err(io::ErrorKind::ConnectionReset.into()),
                    _ => answer,
                }
            }
        })
    };
    let endpoint = |port| format!("http://127.0.0.1:{port}/{account}");
    let (blobs, queues) = (endpoint(10_000), endpoint(10_001));
    let credential = Credential::key(KEY)?;
    let account = Account::new(account, Some(&blobs), Some(&queues), credential)?;
    let settings = Settings {
        clock: Arc::new(TokioClock::starting_at(emulator.now())),
        seed: Some(seed),
        ..Settings::default()
    };
    Ok(AzureStorage::open(account, Arc::new(way), settings)?)
}

fn start() -> Timestamp {
    Timestamp::from_unix_s(START_UNIX_S)
}
