//! The emulator on its sockets, from bind to the last answer.

use std::future::Future;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use smalt_protocol::Service;
use smalt_protocol::connection_string::EMULATOR_ACCOUNT_NAME;
use tokio::sync::watch;

use crate::certificate::{self, Development};
use crate::cli::Flags;
use crate::clock::Clock;
use crate::control::Control;
use crate::disk::SystemDisk;
use crate::emulator::{Builder, Emulator};
use crate::fetch::SourceRules;
use crate::http::{self, Listener, Patience, SourceClient};

/// How often background work is looked after.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(5);
/// Pause between two rounds when the first left something to do.
const MAINTENANCE_BREATH: Duration = Duration::from_millis(50);
/// Steps of background work at a time.
const MAINTENANCE_BUDGET: usize = 1_000;

/// A bound emulator.
pub struct Server {
    emulator: Emulator,
    listeners: Vec<Listener>,
    control: Control,
    addresses: [SocketAddr; 4],
    /// The certificate of smalt's own, if one is served.
    made: Option<Development>,
}

/// An emulator as the command line has it, but for where it keeps its state.
///
/// # Errors
/// What is wrong with the accounts, or with TLS for the sources of copies.
pub fn builder(flags: &Flags) -> anyhow::Result<Builder> {
    let rules = SourceRules::new(flags.copy_source_allow.clone());
    let sources = SourceClient::new(rules).context("TLS cannot be set up")?;
    Ok(Emulator::builder()
        .config(flags.config()?)
        .fetch_sources_by(sources))
}

impl Server {
    /// Binds every socket.
    ///
    /// # Errors
    /// Which address is taken, or what is wrong with the certificate.
    pub async fn bind(flags: &Flags, emulator: Emulator) -> anyhow::Result<Self> {
        let made = development(flags, &emulator)?;
        let tls = match (&flags.cert, &flags.key, &made) {
            (Some(cert), Some(key), _) => Some(http::acceptor(cert, key)?),
            (_, _, Some(made)) => Some(http::acceptor(&made.server(), &made.key())?),
            _ => None,
        };
        let mut addresses = flags.addresses()?;
        let patience = flags
            .stall_timeout_ms
            .map(Patience::of_ms)
            .unwrap_or_default();
        let mut listeners = Vec::new();
        for (service, address) in Service::ALL.into_iter().zip(&mut addresses) {
            let listener = Listener::bind(service, *address, tls.clone(), patience)
                .await
                .with_context(|| in_use(service.as_str(), *address))?;
            *address = listener.address()?;
            listeners.push(listener);
        }
        let control = Control::bind(addresses[3], flags.control_token.clone(), emulator.clone())
            .await
            .with_context(|| in_use("control", addresses[3]))?;
        addresses[3] = control.address()?;
        Ok(Server {
            emulator,
            listeners,
            control,
            addresses,
            made,
        })
    }

    /// The bound addresses of blob, queue, table and control.
    pub fn addresses(&self) -> [SocketAddr; 4] {
        self.addresses
    }

    /// Tells the user where everything is.
    pub fn announce(&self, flags: &Flags) {
        if flags.silent {
            return;
        }
        let scheme = if flags.is_https() { "https" } else { "http" };
        // A reader that has gone, as `head` goes, is no reason to end.
        let _ = std::io::stdout().write_all(self.announcement(flags, scheme).as_bytes());
        self.warn_of_wide_binding(flags);
    }

    fn announcement(&self, flags: &Flags, scheme: &str) -> String {
        let mut text = format!("smalt {} is ready\n", env!("CARGO_PKG_VERSION"));
        let [blob, queue, table, control] = self.addresses;
        let mut line = |name: &str, value: String| text += &format!("  {name:<8} {value}\n");
        for (name, address) in [("blob", blob), ("queue", queue), ("table", table)] {
            line(name, format!("{scheme}://{address}"));
        }
        line("control", format!("http://{control}"));
        if flags.in_memory_persistence {
            line("data", "in memory, gone with the process".to_owned());
        } else {
            let shown = std::path::absolute(&flags.location).unwrap_or(flags.location.clone());
            line("data", shown.display().to_string());
        }
        if let Some(made) = &self.made {
            text += &about_certificate(made);
        }
        text + &format!(
            "\nConnection string:\n  {}\n",
            self.connection_string(scheme)
        )
    }

    /// The first account's connection string. A key that is not the public one is not shown.
    fn connection_string(&self, scheme: &str) -> String {
        let accounts = &self.emulator.core().config.accounts;
        let found = accounts
            .get_key_value(EMULATOR_ACCOUNT_NAME)
            .or_else(|| accounts.first_key_value());
        let Some((name, account)) = found else {
            return String::new();
        };
        let key = match account.keys.first() {
            Some(key) if name == EMULATOR_ACCOUNT_NAME => key.to_base64(),
            _ => "<key>".to_owned(),
        };
        let [blob, queue, table, _] = self.addresses;
        format!(
            "DefaultEndpointsProtocol={scheme};AccountName={name};AccountKey={key};\
             BlobEndpoint={scheme}://{blob}/{name};QueueEndpoint={scheme}://{queue}/{name};\
             TableEndpoint={scheme}://{table}/{name};"
        )
    }

    fn warn_of_wide_binding(&self, flags: &Flags) {
        let wide = self
            .addresses
            .iter()
            .any(|address| !address.ip().is_loopback());
        if wide && flags.accounts.is_none() {
            tracing::warn!(
                "listening beyond loopback with the public key: anybody who reaches this port can \
                 read and write; set AZURITE_ACCOUNTS"
            );
        }
    }

    /// Serves until Ctrl-C or SIGTERM, lets requests in flight end, closes the store.
    ///
    /// # Errors
    /// When the store cannot be closed cleanly.
    pub async fn run(self) -> anyhow::Result<()> {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = tokio::task::JoinSet::new();
        for listener in self.listeners {
            tasks.spawn(listener.serve(self.emulator.clone(), wait(stopped.clone())));
        }
        tasks.spawn(self.control.serve(wait(stopped.clone())));
        tasks.spawn(maintain(self.emulator.clone(), wait(stopped)));
        signal().await;
        tracing::info!("stopping");
        // The receivers are alive in the tasks.
        let _ = stop.send(true);
        while tasks.join_next().await.is_some() {}
        Ok(self.emulator.close()?)
    }
}

/// The certificate that `--devCert` asks for.
fn development(flags: &Flags, emulator: &Emulator) -> anyhow::Result<Option<Development>> {
    let Some(dir) = &flags.dev_cert else {
        return Ok(None);
    };
    let accounts = emulator.core().config.accounts.keys();
    let names = certificate::local_names(accounts.map(String::as_str));
    // Clients check it by their own clocks.
    let now = Clock::system().now();
    let made = certificate::development(&SystemDisk, dir, &names, now);
    made.map(Some).context("--devCert")
}

/// How to make clients trust it.
fn about_certificate(made: &Development) -> String {
    let ca = std::path::absolute(made.ca()).unwrap_or(made.ca());
    let ca = ca.display();
    let state = if made.is_new { ", made just now" } else { "" };
    format!(
        "  {:<8} {ca}{state}\n\n\
         Clients have to trust that file, each in its own way:\n  \
         curl --cacert, SSL_CERT_FILE (Rust, Go, .NET), REQUESTS_CA_BUNDLE (Python),\n  \
         NODE_EXTRA_CA_CERTS (Node.js), keytool -importcert (Java)\n",
        "trust"
    )
}

fn in_use(what: &str, address: SocketAddr) -> String {
    format!("cannot listen on {address} ({what}); is another emulator running there?")
}

async fn wait(mut stopped: watch::Receiver<bool>) {
    // A dropped sender stops as well.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Background work is the main's to call: the emulator itself owns no timer. As long as there is
/// more of it, it goes on after a breath, so that requests come in between.
async fn maintain(emulator: Emulator, stop: impl Future<Output = ()>) {
    tokio::pin!(stop);
    let mut pause = MAINTENANCE_INTERVAL;
    let mut logged = None;
    loop {
        tokio::select! {
            biased;
            () = &mut stop => return,
            () = tokio::time::sleep(pause) => {}
        }
        let emulator = emulator.clone();
        let done = tokio::task::spawn_blocking(move || emulator.maintain(MAINTENANCE_BUDGET));
        pause = match done.await {
            Ok(Ok(report)) if report.more => MAINTENANCE_BREATH,
            Ok(Err(error)) => {
                // A disk that stays full or gone fails it every few seconds.
                let told = Some(error.to_string());
                if logged != told {
                    tracing::error!(%error, "background work failed");
                    logged = told;
                }
                MAINTENANCE_INTERVAL
            }
            _ => MAINTENANCE_INTERVAL,
        };
    }
}

#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return ctrl_c().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        () = ctrl_c() => {}
    }
}

#[cfg(not(unix))]
async fn signal() {
    ctrl_c().await;
}

async fn ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
