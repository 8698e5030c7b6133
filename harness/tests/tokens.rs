//! The sweeper on accounts that it opens with a token of Entra ID, against the service in process:
//! deletes, moves within an account and to another one, and no secrets in logs and reports.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use smalt::{Clock, Config, Emulator, Exchange, OAuth, Timestamp};
use smalt_harness::wire::in_process;
use smalt_protocol::xml::user_delegation_key::UserDelegationKey;
use smalt_sleeve::port::{BlobId, CallContext, ErrorKind, Metadata, PutBlob, Storage};
use smalt_sleeve::{Account, AzureStorage, Credential, FnTransport, Settings, Transport};
use smalt_sweeper::decide::Policy;
use smalt_sweeper::undo::Undo;
use smalt_sweeper::{
    Accounts, DeadConfig, Finished, Outcome, Sweeper, SweeperConfig, SweptContainer,
};

use crate::ServiceTime;

const START_UNIX_S: u64 = 1_795_255_200;
const DAY_S: u64 = 86_400;
const TENANT: &str = "dd0d0df1-06c3-436c-8034-4b9a153097ce";
const SECRET: &str = "the-clients-secret";
const KEY_OPERATION: &str = "Service_GetUserDelegationKey";
const PAST: (&str, &str) = ("TimeToLive", "2026-11-21T09:00:00Z");
const DEAD: (&str, &str) = ("DeadBlobContainer", "dead");

/// Two accounts that one identity can access.
struct World {
    token: String,
    seen: Arc<Mutex<Vec<Exchange>>>,
    accounts: Accounts,
    one: Arc<dyn Storage>,
    two: Arc<dyn Storage>,
}

impl World {
    /// `may_sign`: whether the identity receives keys for signatures.
    async fn open(may_sign: bool) -> World {
        let seen: Arc<Mutex<Vec<Exchange>>> = Arc::default();
        let noted = Arc::clone(&seen);
        let emulator = Emulator::builder()
            .config(config())
            .clock(Clock::tokio(Timestamp::from_unix_s(START_UNIX_S)))
            .seed(1)
            .observe(move |exchange| noted.lock().unwrap().push(exchange))
            .open()
            .unwrap();
        let token = token();
        let transport = transport(&emulator, &token, may_sign);
        let one = storage(&emulator, "one", &transport);
        let two = storage(&emulator, "two", &transport);
        let accounts = Accounts::new()
            .with("default", Arc::clone(&one))
            .with("archive", Arc::clone(&two));
        one.create_container(&cx(), "events").await.unwrap();
        World {
            token,
            seen,
            accounts,
            one,
            two,
        }
    }

    async fn put(&self, name: &str, metadata: &[(&str, &str)]) {
        let pairs = metadata.iter();
        let metadata: Metadata = pairs
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect();
        let put = PutBlob {
            metadata,
            ..PutBlob::default()
        };
        let (blob, content) = (BlobId::new("events", name), Bytes::from_static(b"content"));
        self.one
            .put_blob(&cx(), &blob, content, &put)
            .await
            .unwrap();
    }

    fn sweeper(&self, dead: &str) -> Sweeper {
        let config = SweeperConfig {
            containers: vec![SweptContainer {
                account: "default".to_owned(),
                container: "events".to_owned(),
                prefix: String::new(),
            }],
            dead: DeadConfig {
                account: Some(dead.to_owned()),
                ..DeadConfig::default()
            },
            policy: Policy {
                allow: vec![DEAD.1.to_owned()],
                ..Policy::default()
            },
            ..SweeperConfig::default()
        };
        Sweeper::new(config, self.accounts.clone(), 5).unwrap()
    }

    async fn once(&self, dead: &str) -> Finished {
        let finished = self.sweeper(dead).once().await;
        assert!(finished.error.is_none(), "{:?}", finished.error);
        finished
    }

    fn asked(&self, operation: &str) -> Vec<Exchange> {
        let seen = self.seen.lock().unwrap();
        let asked = seen.iter().filter(|e| e.operation == Some(operation));
        asked.cloned().collect()
    }

    /// Returns every secret that was sent over the wire: the token, the keys, the signatures.
    fn secrets(&self) -> Vec<String> {
        let keys = self.asked(KEY_OPERATION).into_iter();
        let keys = keys.filter_map(|e| UserDelegationKey::read(e.response.body()));
        let mut secrets: Vec<String> = keys.map(|key| key.value.to_base64()).collect();
        for copy in self.asked("Blob_StartCopyFromURL") {
            let source = copy.request.headers()["x-ms-copy-source"].to_str().unwrap();
            let (_, signature) = source.split_once("sig=").unwrap();
            secrets.push(signature.to_owned());
        }
        secrets.extend([self.token.clone(), SECRET.to_owned()]);
        secrets
    }
}

fn cx() -> CallContext {
    CallContext::default()
}

fn config() -> Config {
    let any = Config::default().accounts.into_values().next().unwrap();
    let accounts = ["one", "two"].map(|name| (name.to_owned(), any.clone()));
    Config {
        accounts: accounts.into_iter().collect(),
        oauth: OAuth::Basic,
        ..Config::default()
    }
}

/// Returns a token that is valid for the whole test. Nobody checks its signature.
fn token() -> String {
    let claims = serde_json::json!({
        "aud": "https://storage.azure.com",
        "iss": format!("https://sts.windows.net/{TENANT}/"),
        "nbf": START_UNIX_S - DAY_S,
        "exp": START_UNIX_S + 30 * DAY_S,
        "oid": "23657296-5cd5-45b0-a809-d972a7f4dfe1",
        "tid": TENANT,
    });
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let head = part(r#"{"typ":"JWT","alg":"RS256"}"#);
    format!("{head}.{}.c2ln", part(&claims.to_string()))
}

/// Returns a transport to the service and to Entra ID.
fn transport(emulator: &Emulator, token: &str, may_sign: bool) -> Arc<dyn Transport> {
    let emulator = emulator.clone();
    let granted = serde_json::json!({
        "token_type": "Bearer",
        "expires_in": 30 * DAY_S,
        "access_token": token,
    });
    Arc::new(FnTransport::new(move |request: http::Request<Bytes>| {
        let (emulator, granted) = (emulator.clone(), granted.to_string());
        async move {
            let entra = request.uri().host() == Some("login.microsoftonline.com");
            let query = request.uri().query().unwrap_or_default();
            let refused = !may_sign && query.contains("comp=userdelegationkey");
            let answer = |status: u16, name: &str, value: &str, body: String| {
                let answer = http::Response::builder().status(status);
                Ok(answer.header(name, value).body(Bytes::from(body)).unwrap())
            };
            match (entra, refused) {
                (true, _) => answer(200, "content-type", "application/json", granted),
                (_, true) => {
                    let code = "AuthorizationPermissionMismatch";
                    answer(403, "x-ms-error-code", code, String::new())
                }
                _ => in_process::call(&emulator, request).await,
            }
        }
    }))
}

fn storage(emulator: &Emulator, name: &str, transport: &Arc<dyn Transport>) -> Arc<dyn Storage> {
    let secret = SECRET.to_owned();
    let credential = Credential::client_secret(TENANT, "client", secret, Arc::clone(transport));
    let endpoint = format!("https://127.0.0.1:10000/{name}");
    let account = Account::new(name, Some(&endpoint), None, credential.unwrap()).unwrap();
    let settings = Settings {
        clock: Arc::new(ServiceTime(emulator.clone())),
        seed: Some(1),
        ..Settings::default()
    };
    Arc::new(AzureStorage::open(account, Arc::clone(transport), settings).unwrap())
}

async fn is_there(storage: &Arc<dyn Storage>, path: &str) -> bool {
    let (container, name) = path.split_once('/').unwrap();
    let (cx, blob) = (cx(), BlobId::new(container, name));
    match storage.blob_properties(&cx, &blob).await {
        Ok(_) => true,
        Err(error) if error.kind == ErrorKind::NotFound => false,
        Err(error) => panic!("{error}"),
    }
}

/// Collects the log of this process, at all levels.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Blobs are deleted and moved, within the account and to another one, and restored. The sweeper
/// requests one key, and another one when the first expires before a copy might end.
#[tokio::test(start_paused = true)]
async fn a_token_sweeps_and_restores() {
    for (dead, account) in [("default", "one"), ("archive", "two")] {
        let world = World::open(true).await;
        let there = if account == "one" {
            &world.one
        } else {
            &world.two
        };
        world.put("goes", &[PAST]).await;
        for name in ["a", "b", "c"] {
            world.put(name, &[PAST, DEAD]).await;
        }
        let finished = world.once(dead).await;
        let counted = [Outcome::Deleted, Outcome::Moved].map(|o| finished.report.count(o));
        assert_eq!(counted, [1, 3], "{account}: {:?}", finished.report.failures);
        assert!(!is_there(&world.one, "events/goes").await);
        for name in ["a", "b", "c"] {
            assert!(!is_there(&world.one, &format!("events/{name}")).await);
            assert!(is_there(there, &format!("dead/{name}")).await);
        }
        assert_eq!(world.asked(KEY_OPERATION).len(), 1);
        assert_eq!(finished.report.transactions["user_delegation_key"], 1);
        tokio::time::sleep(Duration::from_secs(DAY_S + 1)).await;
        world.put("late", &[PAST, DEAD]).await;
        assert_eq!(world.once(dead).await.report.count(Outcome::Moved), 1);
        assert_eq!(world.asked(KEY_OPERATION).len(), 2);
        let undo = Undo {
            from: vec![("dead".to_owned(), String::new())],
            ..Undo::default()
        };
        let back = world.sweeper(dead).undo(&undo, |_| {}).await.unwrap();
        assert_eq!(back.failed(), 0, "{back:?}");
        assert!(is_there(&world.one, "events/a").await);
        assert!(!is_there(there, "dead/a").await);
    }
}

/// An identity that may not request a key keeps blobs that are to be moved, and reports the missing
/// role. Blobs that are to be deleted are deleted.
#[tokio::test(start_paused = true)]
async fn an_identity_that_may_not_sign_reports_the_missing_role() {
    let world = World::open(false).await;
    world.put("goes", &[PAST]).await;
    world.put("stays", &[PAST, DEAD]).await;
    let finished = world.once("archive").await;
    let counted = [Outcome::Deleted, Outcome::Denied].map(|o| finished.report.count(o));
    assert_eq!(counted, [1, 1]);
    let detail = finished.report.failures[0].detail.as_deref().unwrap();
    assert!(detail.contains("Storage Blob Delegator"), "{detail}");
    assert!(is_there(&world.one, "events/stays").await);
}

/// Neither token nor key nor signature is in the log, the report, the state, or a copy's metadata.
#[tokio::test(start_paused = true)]
async fn secrets_do_not_leak() {
    let log = Log::default();
    let written = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || written.clone())
        .finish();
    // The subscriber is global: a thread's own is not asked about call sites that another thread
    // reaches first.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    tracing::callsite::rebuild_interest_cache();
    let world = World::open(true).await;
    world.put("a", &[PAST, DEAD]).await;
    let finished = world.once("archive").await;
    assert_eq!(finished.report.count(Outcome::Moved), 1);
    let state = BlobId::new("smalt-sweeper", "TimeToLiveBlobs");
    let state = world.one.get_blob(&cx(), &state, 1 << 20).await.unwrap();
    let copy = BlobId::new("dead", "a");
    let (copy, _) = world.two.blob_properties(&cx(), &copy).await.unwrap();
    let texts = [
        (
            "log",
            String::from_utf8(log.0.lock().unwrap().clone()).unwrap(),
        ),
        ("report", serde_json::to_string(&finished.report).unwrap()),
        (
            "state",
            String::from_utf8_lossy(&state.content).into_owned(),
        ),
        ("copy", format!("{:?}", copy.metadata)),
    ];
    assert!(texts[0].1.contains("op=\"blob\""), "{}", texts[0].1);
    let secrets = world.secrets();
    assert_eq!(secrets.len(), 4, "{secrets:?}");
    for (place, text) in texts {
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "{place}: {secret}");
        }
    }
}
