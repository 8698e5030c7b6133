//! The control endpoint: lets tests and operators control the emulator from outside.
//!
//! | path | methods | |
//! | --- | --- | --- |
//! | `/health` | GET | whether requests are served |
//! | `/ready` | GET | whether writes are taken; 503 with the reasons when not |
//! | `/metrics` | GET | counters, in Prometheus' text form |
//! | `/clock` | GET, PUT | read; set, advance, freeze, run |
//! | `/faults` | GET, POST, DELETE | rules with an account of which fired; add one; remove all |
//! | `/state` | GET, DELETE | dump; forget everything |
//! | `/state/export`, `/state/import` | GET; POST | the state as one stream |
//! | `/state/snapshots` | GET | named snapshots |
//! | `/state/snapshots/{name}` | PUT, POST, DELETE | save; load; delete |
//! | `/state/reset` | POST | back to the state after the start |
//! | `/accounts` | GET | settings of every account |
//! | `/accounts/{name}` | GET, PUT, PATCH | read; set all; set some |
//! | `/accounts/{name}/containers/{name}/...` | GET, PUT, POST, DELETE | policy, legal holds |
//! | `/identity/token`, `/{tenant}/oauth2/v2.0/token`, ... | | bearer tokens: see `identity` |
//! | `/subscriptions` | GET | every event subscription |
//! | `/subscriptions/{name}` | GET, PUT, DELETE | read; create or change; delete |
//! | `/subscriptions/{name}/confirm` | any | the `validationUrl` of a webhook |
//!
//! It rejects cross-origin requests of browsers and foreign host names, so that a web page cannot
//! reach it through the user's browser. Beyond loopback it requires a token.

mod accounts;
mod clock;
mod containers;
mod content;
mod faults;
mod guard;
mod identity;
mod metrics;
mod ready;
mod refusal;
mod saved;
mod state;
mod subscriptions;
mod transfer;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::body::Body;
use crate::core::Core;
use crate::emulator::Emulator;
use crate::http::{Ends, Patience, Transport, accept};

use content::{json, parse, text};
use refusal::no_such_method;
pub(crate) use refusal::{Refusal, failed};

/// A control endpoint bound to an address.
pub struct Control {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    token: Option<String>,
    emulator: Emulator,
}

impl Control {
    /// Binds the endpoint.
    ///
    /// # Errors
    /// When the address is taken, or is beyond loopback without a token.
    pub async fn bind(
        address: SocketAddr,
        token: Option<String>,
        emulator: Emulator,
    ) -> std::io::Result<Self> {
        if !address.ip().is_loopback() && token.is_none() {
            return Err(std::io::Error::other(
                "beyond loopback the control endpoint needs --controlToken",
            ));
        }
        let listener = TcpListener::bind(address).await?;
        Ok(Control {
            listener,
            tls: None,
            token,
            emulator,
        })
    }

    /// Serves HTTPS besides HTTP, on the same port: applications request tokens over HTTPS only.
    #[must_use]
    pub fn with_tls(mut self, tls: Option<TlsAcceptor>) -> Self {
        self.tls = tls;
        self
    }

    /// Returns the bound address.
    ///
    /// # Errors
    /// When the operating system cannot tell.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves requests until `stop` completes.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let (emulator, token) = (self.emulator, Arc::new(self.token));
        let handle = Arc::new(move |request: Request<Body>, _: Ends| {
            let (emulator, token) = (emulator.clone(), token.clone());
            async move { Ok(answer(&emulator, token.as_deref(), request).await) }
        });
        let transport = self.tls.map_or(Transport::Http, Transport::Both);
        accept(self.listener, transport, Patience::default(), handle, stop).await;
    }
}

/// Answers one request as [`Control::serve`] does, without a socket.
pub async fn answer(
    emulator: &Emulator,
    token: Option<&str>,
    request: Request<Body>,
) -> Response<Body> {
    serve(emulator, token, request)
        .await
        .unwrap_or_else(|Refusal(status, message)| {
            let mut response = json(&serde_json::json!({ "error": message }));
            *response.status_mut() = status;
            response
        })
}

async fn serve(
    emulator: &Emulator,
    token: Option<&str>,
    request: Request<Body>,
) -> Result<Response<Body>, Refusal> {
    let core = emulator.core();
    let is_identity = identity::is_path(request.uri().path());
    let required = token.filter(|_| !is_identity);
    guard::check(&request, required, &core.config.allowed_hosts)?;
    let (head, body) = request.into_parts();
    if is_identity {
        return Ok(identity::serve(core, token, &head, body).await);
    }
    match (head.uri.path(), &head.method) {
        ("/health", &Method::GET) => Ok(json(&serde_json::json!({ "status": "ok" }))),
        ("/ready", &Method::GET) => {
            let (status, told) = ready::read(core);
            let mut response = json(&told);
            *response.status_mut() = status;
            Ok(response)
        }
        ("/metrics", &Method::GET) => Ok(text(metrics::render(core))),
        ("/clock", &Method::GET) => Ok(json(&clock::read(core))),
        ("/clock", &Method::PUT | &Method::POST) => {
            clock::change(core, &parse(body).await?)?;
            core.events.wake();
            Ok(json(&clock::read(core)))
        }
        ("/faults", &Method::GET) => Ok(json(&core.faults.account())),
        ("/faults", &Method::POST) => {
            faults::add(core, parse(body).await?)?;
            Ok(json(&core.faults.account()))
        }
        ("/faults", &Method::DELETE) => {
            let account = core.faults.account();
            core.faults.clear();
            Ok(json(&account))
        }
        ("/state", &Method::GET) => {
            let dump = || state::dump(core, head.uri.query()).map(|state| json(&state));
            core.lane.run(dump).await
        }
        ("/state", &Method::DELETE) => {
            let reset = saved::blocking(emulator, Emulator::reset).await?;
            reset.map_err(|error| failed(&error))?;
            Ok(json(&serde_json::json!({ "status": "empty" })))
        }
        ("/accounts", &Method::GET) => Ok(json(&accounts::all(core))),
        ("/subscriptions", &Method::GET) => Ok(json(&subscriptions::all(emulator)?)),
        (
            "/health" | "/ready" | "/metrics" | "/clock" | "/faults" | "/state" | "/accounts"
            | "/subscriptions",
            _,
        ) => Err(no_such_method()),
        ("/state/export", &Method::GET) => Ok(transfer::export(emulator)),
        ("/state/import", &Method::POST) => Ok(json(&transfer::import(emulator, body).await?)),
        ("/state/reset", &Method::POST) => Ok(json(&saved::reset(emulator).await?)),
        ("/state/snapshots", &Method::GET) => Ok(json(&emulator.snapshots())),
        ("/state/export" | "/state/import" | "/state/reset" | "/state/snapshots", _) => {
            Err(no_such_method())
        }
        _ => named(emulator, &head, body).await,
    }
}

/// Serves the paths that end with a name.
async fn named(emulator: &Emulator, head: &Parts, body: Body) -> Result<Response<Body>, Refusal> {
    let (path, method) = (head.uri.path(), &head.method);
    if let Some(name) = path.strip_prefix(accounts::ACCOUNT) {
        if let Some((account, container)) = name.split_once("/containers/") {
            let core = emulator.core();
            let worm = containers::serve(core, account, container, method, body).await?;
            return Ok(json(&worm));
        }
        return account(emulator.core(), name, method, body).await;
    }
    if let Some(name) = path.strip_prefix(saved::SNAPSHOT) {
        return Ok(json(&saved::serve(emulator, name, method).await?));
    }
    if let Some(name) = path.strip_prefix(subscriptions::SUBSCRIPTION) {
        return subscriptions::serve(emulator, name, head, body).await;
    }
    Err(Refusal::new(
        StatusCode::NOT_FOUND,
        "unknown path; use /health, /ready, /metrics, /clock, /faults, /state, /accounts or \
         /subscriptions",
    ))
}

async fn account(
    core: &Core,
    name: &str,
    method: &Method,
    body: Body,
) -> Result<Response<Body>, Refusal> {
    let settings = match *method {
        Method::GET => accounts::one(core, name)?,
        Method::PUT => accounts::change(core, name, parse(body).await?, false)?,
        Method::PATCH => accounts::change(core, name, parse(body).await?, true)?,
        _ => return Err(no_such_method()),
    };
    Ok(json(settings.as_ref()))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::body;
    use crate::clock::Clock;
    use smalt_protocol::Timestamp;

    async fn ask(
        emulator: &Emulator,
        method: &str,
        path: &str,
        body_text: &str,
    ) -> (u16, serde_json::Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "127.0.0.1:10003")
            .body(body::full(body_text.to_owned()))
            .unwrap();
        let response = answer(emulator, None, request).await;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    fn emulator() -> Emulator {
        let clock = Clock::manual(Timestamp::from_unix_s(1_700_000_000));
        Emulator::builder().clock(clock).seed(1).open().unwrap()
    }

    #[tokio::test]
    async fn time_moves_on_request_and_never_backwards() {
        let emulator = emulator();
        let (status, clock) = ask(&emulator, "PUT", "/clock", r#"{"advance_s": 3600}"#).await;
        assert_eq!(
            (status, clock["now"].as_str()),
            (200, Some("2023-11-14T23:13:20.0000000Z"))
        );
        let write = emulator.core().store.commit(|tx, _| {
            tx.put(vec![0x30], vec![1]);
            Ok(())
        });
        write.await.unwrap();
        let back = r#"{"now": "2020-01-01T00:00:00Z"}"#;
        assert_eq!(ask(&emulator, "PUT", "/clock", back).await.0, 409);
        assert_eq!(ask(&emulator, "DELETE", "/state", "").await.0, 200);
        assert_eq!(ask(&emulator, "PUT", "/clock", back).await.0, 200);
        // Leaves room for later ETags and ids.
        for far in [
            r#"{"now": "9999-12-31T23:59:59Z"}"#,
            r#"{"advance_s": 1e18}"#,
        ] {
            let (_, clock) = ask(&emulator, "PUT", "/clock", far).await;
            assert_eq!(clock["now"], "9000-01-01T00:00:00.0000000Z", "{far}");
        }
    }

    /// After a restart with a clock that was moved, time stands still until it is rebased.
    #[tokio::test]
    async fn a_clock_behind_the_store_is_shown_and_rebased() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::manual(Timestamp::from_unix_s(1_700_000_000));
        let open = || {
            let builder = Emulator::builder().clock(clock.clone()).seed(1);
            builder.durable(dir.path()).open().unwrap()
        };
        let first = open();
        assert_eq!(ask(&first, "GET", "/ready", "").await.0, 200);
        ask(&first, "PUT", "/clock", r#"{"advance_s": 864000}"#).await;
        let write = first.core().store.commit(|tx, _| {
            tx.put(vec![0x30], vec![1]);
            Ok(())
        });
        write.await.unwrap();
        first.close().unwrap();
        clock.set(Timestamp::from_unix_s(1_700_000_000));
        let emulator = open();
        let (status, ready) = ask(&emulator, "GET", "/ready", "").await;
        assert_eq!(
            (status, ready["reasons"][0]["reason"].as_str()),
            (503, Some("clock_behind"))
        );
        assert_eq!(ask(&emulator, "GET", "/health", "").await.0, 200);
        let (_, shown) = ask(&emulator, "GET", "/clock", "").await;
        assert_eq!(
            (&shown["behind_s"], &shown["now"]),
            (&864_000.into(), &shown["last_used"])
        );
        let metrics = metrics::render(emulator.core());
        assert!(
            metrics.contains("smalt_trouble{reason=\"clock_behind\"} 1"),
            "{metrics}"
        );
        assert!(
            metrics.contains("smalt_clock_behind_seconds 864000"),
            "{metrics}"
        );
        let back = r#"{"rebase": true, "now": "2020-01-01T00:00:00Z"}"#;
        assert_eq!(ask(&emulator, "PUT", "/clock", back).await.0, 409);
        let (_, shown) = ask(&emulator, "GET", "/clock", "").await;
        assert_eq!(shown["behind_s"], 864_000, "a refused change rebases");
        let (_, shown) = ask(&emulator, "PUT", "/clock", r#"{"rebase": true}"#).await;
        assert_eq!(
            (&shown["behind_s"], shown["now"].as_str()),
            (&0.into(), Some("2023-11-14T22:13:20.0000000Z"))
        );
        let (status, ready) = ask(&emulator, "GET", "/ready", "").await;
        assert_eq!(
            (status, ready),
            (200, serde_json::json!({"ready": true, "reasons": []}))
        );
    }

    #[tokio::test]
    async fn faults_are_accounted_for() {
        let emulator = emulator();
        let rule = r#"{"operation": "Queue_Create", "fault": {"kind": "refuse", "status": 503}}"#;
        assert_eq!(ask(&emulator, "POST", "/faults", rule).await.0, 200);
        let rule = r#"{"fault": {"kind": "pending_copy", "duration_s": 60}}"#;
        assert_eq!(ask(&emulator, "POST", "/faults", rule).await.0, 200);
        let (_, account) = ask(&emulator, "DELETE", "/faults", "").await;
        assert_eq!(account[0]["fired"], 0);
        assert_eq!(account[1]["rule"]["fault"]["duration_s"], 60);
        for bad in [
            r#"{"operation": "Nothing", "fault": {"kind": "reset"}}"#,
            "{",
            "{}",
        ] {
            assert_eq!(ask(&emulator, "POST", "/faults", bad).await.0, 400, "{bad}");
        }
    }

    #[tokio::test]
    async fn settings_of_an_account_change_and_keys_are_not_shown() {
        let emulator = emulator();
        let path = "/accounts/devstoreaccount1";
        let (status, all) = ask(&emulator, "GET", "/accounts", "").await;
        let versioning = &all["devstoreaccount1"]["versioning"];
        assert_eq!((status, versioning), (200, &false.into()));
        assert!(!all.to_string().to_lowercase().contains("key"));
        let on = r#"{"versioning": true}"#;
        assert_eq!(ask(&emulator, "PATCH", path, on).await.0, 200);
        let retention = r#"{"container_retention_days": 7}"#;
        let (_, both) = ask(&emulator, "PATCH", path, retention).await;
        assert_eq!(both["versioning"], true);
        assert_eq!(both["container_retention_days"], 7);
        let (_, only) = ask(&emulator, "PUT", path, retention).await;
        assert_eq!(only["versioning"], false);
        assert!(!emulator.core().settings("devstoreaccount1").versioning);
        for bad in [
            r#"{"container_retention_days": 0}"#,
            r#"{"container_retention_days": 366}"#,
            r#"{"versioning": "on"}"#,
            r#"{"keys": []}"#,
            "[]",
        ] {
            assert_eq!(ask(&emulator, "PATCH", path, bad).await.0, 400, "{bad}");
        }
        assert_eq!(ask(&emulator, "PUT", "/accounts/nobody", "{}").await.0, 404);
        assert_eq!(ask(&emulator, "GET", "/accounts/nobody", "").await.0, 404);
        assert_eq!(ask(&emulator, "DELETE", path, "").await.0, 405);
    }

    #[tokio::test]
    async fn unknown_paths_and_methods_are_refused() {
        let emulator = emulator();
        assert_eq!(ask(&emulator, "GET", "/nothing", "").await.0, 404);
        assert_eq!(ask(&emulator, "POST", "/health", "").await.0, 405);
        assert_eq!(ask(&emulator, "GET", "/health", "").await.0, 200);
        assert_eq!(ask(&emulator, "GET", "/state", "").await.0, 200);
    }
}
