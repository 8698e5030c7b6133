//! The emulator on its sockets, from binding them to the last response.

mod announce;
mod azurite;
mod endpoints;
mod ready_file;
mod sockets;

use std::future::Future;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use smalt_protocol::Service;
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

use self::azurite::Voice;
use self::endpoints::{Endpoints, scheme};

use self::ready_file::ReadyFile;
use crate::certificate::{self, Development};
use crate::cli::Flags;
use crate::clock::Clock;
use crate::control::Control;
use crate::disk::SystemDisk;
use crate::emulator::{Builder, Emulator};
use crate::fetch::SourceRules;
use crate::http::{self, AccessLog, AccessLogEnd, Listener, SourceClient};
use crate::state::start::{self, Start, Started};

/// Interval between checks for background work.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(5);
/// Pause between two rounds when the first left work to do.
const MAINTENANCE_BREATH: Duration = Duration::from_millis(50);
/// Steps of background work in one round.
const MAINTENANCE_BUDGET: usize = 1_000;

/// Shortest wait for the next delivery that is due: a frozen clock does not reach it.
const DELIVERY_PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest wait for it: the state may be replaced by one that has events.
const DELIVERY_PAUSE_MAX: Duration = Duration::from_secs(5);

/// Time limit for printing a line while the server stops.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// An emulator with bound sockets.
pub struct Server {
    emulator: Emulator,
    listeners: Vec<Listener>,
    data_lake: Option<Listener>,
    control: Control,
    endpoints: Endpoints,
    /// The certificate of `--devCert`; `None` without that flag.
    made: Option<Development>,
    /// Formats Azurite's lines; `None` when they are not printed.
    voice: Option<Voice>,
    log_end: Option<AccessLogEnd>,
    ready_file: Option<ReadyFile>,
}

/// Returns a builder with the configuration of the command line, without a place for the state.
///
/// # Errors
/// When the accounts are invalid, or TLS for copy sources cannot be set up.
pub fn builder(flags: &Flags) -> anyhow::Result<Builder> {
    let rules = SourceRules::new(flags.copy_source_allow.clone());
    let sources = SourceClient::new(rules).context("cannot set up TLS")?;
    // An operator names the webhooks, unlike the sources of copies.
    let everywhere = SourceRules::new(vec!["all".parse()?]);
    let hooks = SourceClient::new(everywhere).context("cannot set up TLS")?;
    let builder = Emulator::builder()
        .config(flags.config()?)
        .fetch_sources_by(sources)
        .send_webhooks_by(hooks);
    Ok(match flags.extent_memory_limit {
        Some(bytes) => builder.memory_limit(bytes),
        None => builder,
    })
}

/// Imports Azurite's data and applies the seed.
///
/// # Errors
/// When the import or the seed fails; the state is then unchanged.
pub async fn start(flags: &Flags, emulator: &Emulator) -> anyhow::Result<Started> {
    let what = Start {
        location: (!flags.in_memory_persistence).then(|| flags.location.clone()),
        azurite: flags.import_azurite.clone(),
        seed: flags.seed.clone(),
        subscriptions: flags.subscriptions.clone(),
    };
    Ok(start::start(emulator, &SystemDisk, &what).await?)
}

/// Prints what was imported and what the seed created.
pub fn announce_start(flags: &Flags, started: &Started) {
    if let Some(dir) = &started.passed_over {
        tracing::warn!(
            "{} contains Azurite data that is not in this store: it was never imported, or changed \
             since. To import it, start with an empty --location and --importAzurite",
            dir.display()
        );
    }
    let mut text = String::new();
    if let Some((dir, report)) = &started.imported {
        let dir = dir.display();
        text += &format!("\nImported from Azurite's {dir}, which was not changed:\n  {report}\n");
    }
    if let Some(seeded) = &started.seeded {
        let (made, left) = (seeded.made, seeded.left);
        text += &format!("\nSeed: {made} created, {left} existed already\n");
    }
    if !flags.silent {
        print(&text);
    }
}

impl Server {
    /// Binds every socket, and prints Azurite's lines meanwhile if they are wanted.
    ///
    /// # Errors
    /// When an address is taken, or the certificate cannot be used.
    pub async fn bind(flags: &Flags, emulator: Emulator) -> anyhow::Result<Self> {
        let made = development(flags, &emulator)?;
        let tls = acceptor(flags, made.as_ref())?;
        let is_logged = flags.speaks_as_azurite() && !flags.silent;
        let log = is_logged.then(AccessLog::start).transpose();
        let (log, log_end) = log.context("cannot start the access log")?.unzip();
        let listeners = sockets::bind_services(flags, tls.as_ref(), log).await?;
        let data_lake = sockets::bind_data_lake(flags, tls.as_ref()).await?;
        let control = sockets::bind_control(flags, tls.as_ref(), &emulator).await?;
        let services = listeners
            .iter()
            .map(|listener| Ok((listener.service(), listener.address()?)));
        let endpoints = Endpoints {
            scheme: scheme(flags),
            services: services.collect::<io::Result<_>>()?,
            data_lake: data_lake.as_ref().map(Listener::address).transpose()?,
            control: control.address()?,
        };
        Ok(Server {
            emulator,
            listeners,
            data_lake,
            control,
            endpoints,
            made,
            voice: Voice::of(flags),
            log_end,
            ready_file: None,
        })
    }

    /// Returns the bound address of a service; `None` when it was not started.
    pub fn address(&self, service: Service) -> Option<SocketAddr> {
        self.endpoints.of(service)
    }

    /// Returns the bound address of the control endpoint.
    pub fn control_address(&self) -> SocketAddr {
        self.endpoints.control
    }

    /// Prints the addresses, and writes the ready file.
    ///
    /// # Errors
    /// When the ready file cannot be written.
    pub fn announce(&mut self, flags: &Flags) -> anyhow::Result<()> {
        if !flags.silent {
            print(&announce::text(self, flags));
            if self.endpoints.is_beyond_loopback() && flags.accounts.is_none() {
                tracing::warn!(
                    "listening beyond loopback with the public key: anyone who reaches this port \
                     can read and write; set AZURITE_ACCOUNTS"
                );
            }
        }
        if let Some(path) = &flags.ready_file {
            let ca = self.made.as_ref().map(Development::ca);
            let config = &self.emulator.core().config;
            let file = ReadyFile::write(path, &self.endpoints, config, ca)?;
            self.ready_file = Some(file);
        }
        Ok(())
    }

    /// Serves until `stop` is ready, waits for requests in flight, and closes the store.
    ///
    /// # Errors
    /// When the store cannot be closed cleanly.
    pub async fn run(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let (stopping, stopped) = watch::channel(false);
        let mut tasks = tokio::task::JoinSet::new();
        let services: Vec<Service> = self.listeners.iter().map(Listener::service).collect();
        for listener in self.listeners.into_iter().chain(self.data_lake) {
            tasks.spawn(listener.serve(self.emulator.clone(), wait(stopped.clone())));
        }
        tasks.spawn(self.control.serve(wait(stopped.clone())));
        tasks.spawn(maintain(self.emulator.clone(), wait(stopped.clone())));
        tasks.spawn(deliver(self.emulator.clone(), wait(stopped)));
        stop.await;
        tracing::info!("stopping");
        drop(self.ready_file);
        let say = async |words: fn(Voice, Service) -> String| {
            if let Some(voice) = self.voice {
                let lines = services.iter().map(|service| words(voice, *service));
                print_in_time(lines.collect()).await;
            }
        };
        say(Voice::closing).await;
        // Cannot fail: the tasks keep the receivers.
        let _ = stopping.send(true);
        while tasks.join_next().await.is_some() {}
        if let Err(error) = self.emulator.write_logs().await {
            tracing::warn!(%error, "cannot write the logs of requests");
        }
        self.emulator.close()?;
        if let Some(end) = self.log_end {
            end.reached().await;
        }
        say(Voice::closed).await;
        Ok(())
    }
}

/// Prints at once, and ignores a closed pipe, as with `head`.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints, but waits at most [`LAST_WORDS`] for a stalled reader.
async fn print_in_time(text: String) {
    let (done, printed) = oneshot::channel();
    std::thread::spawn(move || {
        print(&text);
        // Fails when the wait has timed out.
        let _ = done.send(());
    });
    let _ = tokio::time::timeout(LAST_WORDS, printed).await;
}

fn acceptor(flags: &Flags, made: Option<&Development>) -> anyhow::Result<Option<TlsAcceptor>> {
    Ok(match (&flags.cert, &flags.key, &flags.pwd, made) {
        (Some(cert), Some(key), _, _) => Some(http::acceptor(cert, key)?),
        (Some(cert), None, Some(password), _) => Some(http::pfx_acceptor(cert, password)?),
        (_, _, _, Some(made)) => Some(http::acceptor(&made.server(), &made.key())?),
        _ => None,
    })
}

/// Creates or loads the certificate of `--devCert`.
fn development(flags: &Flags, emulator: &Emulator) -> anyhow::Result<Option<Development>> {
    let Some(dir) = &flags.dev_cert else {
        return Ok(None);
    };
    let accounts = emulator.core().config.accounts.keys();
    let names = certificate::local_names(accounts.map(String::as_str));
    // Clients check the certificate against their own clocks.
    let now = Clock::system().now();
    let made = certificate::development(&SystemDisk, dir, &names, now);
    made.map(Some).context("--devCert")
}

async fn wait(mut stopped: watch::Receiver<bool>) {
    // A dropped sender also means stop.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Runs background work, because the emulator itself has no timer. While there is more work, it
/// continues after a short pause, so that requests run in between.
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
        if let Err(error) = emulator.write_due_logs().await {
            tracing::warn!(%error, "cannot write the logs of requests");
        }
        let emulator = emulator.clone();
        let done = tokio::task::spawn_blocking(move || emulator.maintain(MAINTENANCE_BUDGET));
        pause = match done.await {
            Ok(Ok(report)) if report.more => MAINTENANCE_BREATH,
            Ok(Err(error)) => {
                // A full or missing disk fails every few seconds with the same error, which is
                // logged once.
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

/// Delivers events when they are raised, when the clock is moved, and when the next one is due. A
/// delivery in progress ends with the server, and is repeated after the next start.
async fn deliver(emulator: Emulator, stop: impl Future<Output = ()>) {
    let deliveries = async {
        loop {
            let pause = match emulator.deliver_events().await {
                Ok(next) => next.map(|next| next.since(emulator.now())),
                Err(error) => {
                    tracing::warn!(%error, "cannot deliver events");
                    Some(MAINTENANCE_INTERVAL)
                }
            };
            let pause = pause.unwrap_or(DELIVERY_PAUSE_MAX);
            let pause = pause.clamp(DELIVERY_PAUSE_MIN, DELIVERY_PAUSE_MAX);
            let woken = emulator.core().events.woken();
            let _ = tokio::time::timeout(pause, woken).await;
        }
    };
    tokio::select! {
        biased;
        () = stop => {}
        () = deliveries => {}
    }
}

/// Waits until standard input ends or cannot be read.
pub async fn stdin_end() {
    // The input is ignored; success and error both mean its end.
    let _ = tokio::io::copy(&mut tokio::io::stdin(), &mut tokio::io::sink()).await;
}

/// Returns a future that is ready at SIGTERM or Ctrl-C. The handlers are installed by this call,
/// not by the future: a container's first process gets only signals that it handles, and opening a
/// store takes time.
///
/// # Errors
/// When the system does not allow it.
#[cfg(unix)]
pub fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Returns a future that is ready at Ctrl-C.
///
/// # Errors
/// When the system does not allow it.
#[cfg(not(unix))]
pub fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}
