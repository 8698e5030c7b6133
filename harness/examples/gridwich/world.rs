//! Two accounts of one service in this process, the way to them, and what an event subscription of
//! both delivers.

use std::error::Error;
use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use smalt::{Clock, Emulator, Exchange};
use smalt_harness::wire::in_process;
use smalt_protocol::Timestamp;
use smalt_protocol::signing::AccountKey;
use smalt_sleeve::{
    Account, Accounts, AzureStorage, Credential, FnTransport, Settings, TokioClock,
};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The account with the films.
pub(crate) const LIBRARY: &str = "library";
/// The account in which films are encoded.
pub(crate) const ENCODER: &str = "encoder";
const KEY: &str = "c21hbHQgZ3JpZHdpY2g=";
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

/// The service.
pub(crate) struct World {
    pub(crate) emulator: Emulator,
    seen: Arc<Mutex<Vec<Exchange>>>,
}

impl World {
    pub(crate) fn open(seed: u64) -> Outcome<World> {
        let seen: Arc<Mutex<Vec<Exchange>>> = Arc::default();
        let noted = Arc::clone(&seen);
        let key = AccountKey::parse(KEY).ok_or("the key is not Base64")?;
        let emulator = Emulator::builder()
            .clock(Clock::tokio(start()))
            .seed(seed)
            .account(LIBRARY, key.clone())
            .account(ENCODER, key)
            .observe(move |it| {
                noted
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(it);
            })
            .open()?;
        Ok(World { emulator, seen })
    }

    /// Opens both accounts for one process, to whose requests `fate` says what happens by number.
    pub(crate) fn accounts(
        &self,
        seed: u64,
        fate: impl Fn(usize) -> Fate + Send + Sync + 'static,
    ) -> Outcome<Accounts> {
        let (emulator, sent, fate) = (self.emulator.clone(), AtomicUsize::new(0), Arc::new(fate));
        let way = Arc::new(FnTransport::new(move |request| {
            let fate = fate(sent.fetch_add(1, Ordering::Relaxed));
            let emulator = emulator.clone();
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
        }));
        let open = |name: &str| -> Outcome<AzureStorage> {
            let endpoint = format!("http://127.0.0.1:10000/{name}");
            let account = Account::new(name, Some(&endpoint), None, Credential::key(KEY)?)?;
            let settings = Settings {
                clock: Arc::new(TokioClock::starting_at(self.emulator.now())),
                seed: Some(seed),
                ..Settings::default()
            };
            Ok(AzureStorage::open(account, way.clone(), settings)?)
        };
        [LIBRARY, ENCODER].into_iter().map(open).collect()
    }

    pub(crate) fn history(&self) -> Vec<Exchange> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }

    /// Returns the events of all executed requests, in Event Grid's documented form.
    pub(crate) fn events(&self) -> Vec<Vec<u8>> {
        let history = self.history();
        let executed = history
            .iter()
            .filter(|it| it.response.status().is_success());
        executed.filter_map(event).collect()
    }
}

fn start() -> Timestamp {
    Timestamp::from_unix_s(START_UNIX_S)
}

fn event(exchange: &Exchange) -> Option<Vec<u8>> {
    let (request, response) = (&exchange.request, &exchange.response);
    let (kind, api) = match exchange.operation? {
        "BlockBlob_Upload" => ("Created", "PutBlob"),
        "Blob_StartCopyFromURL" => ("Created", "CopyBlob"),
        "Blob_Delete" => ("Deleted", "DeleteBlob"),
        _ => return None,
    };
    debug_assert!(matches!(*request.method(), Method::PUT | Method::DELETE));
    let answered = |name: &str| response.headers().get(name)?.to_str().ok();
    let id = answered("x-ms-request-id");
    let asked = request.headers().get("x-ms-client-request-id");
    let event = serde_json::json!({
        "id": id,
        "eventType": format!("Microsoft.Storage.Blob{kind}"),
        "data": {
            "api": api,
            "clientRequestId": asked.and_then(|id| id.to_str().ok()).unwrap_or_default(),
            "requestId": id,
            "eTag": answered("etag").unwrap_or_default().trim_matches('"'),
            "url": request.uri().to_string(),
        },
    });
    Some(event.to_string().into_bytes())
}
