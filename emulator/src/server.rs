//! The emulator on its sockets, from bind to the last answer.

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

/// How often background work is looked after.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(5);
/// Pause between two rounds when the first left something to do.
const MAINTENANCE_BREATH: Duration = Duration::from_millis(50);
/// Steps of background work at a time.
const MAINTENANCE_BUDGET: usize = 1_000;

/// Time in which a line about the end must be read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A bound emulator.
pub struct Server {
    emulator: Emulator,
    listeners: Vec<Listener>,
    control: Control,
    endpoints: Endpoints,
    /// The certificate of smalt's own, if one is served.
    made: Option<Development>,
    /// Says what Azurite says when it stops.
    voice: Option<Voice>,
    log_end: Option<AccessLogEnd>,
    ready_file: Option<ReadyFile>,
}

/// An emulator as the command line has it, but for where it keeps its state.
///
/// # Errors
/// What is wrong with the accounts, or with TLS for the sources of copies.
pub fn builder(flags: &Flags) -> anyhow::Result<Builder> {
    let rules = SourceRules::new(flags.copy_source_allow.clone());
    let sources = SourceClient::new(rules).context("TLS cannot be set up")?;
    let builder = Emulator::builder()
        .config(flags.config()?)
        .fetch_sources_by(sources);
    Ok(match flags.extent_memory_limit {
        Some(bytes) => builder.memory_limit(bytes),
        None => builder,
    })
}

/// Imports data of Azurite and plants the seed.
///
/// # Errors
/// When an import or the seed is refused; the state is then as it was.
pub async fn start(flags: &Flags, emulator: &Emulator) -> anyhow::Result<Started> {
    let what = Start {
        location: (!flags.in_memory_persistence).then(|| flags.location.clone()),
        azurite: flags.import_azurite.clone(),
        seed: flags.seed.clone(),
    };
    Ok(start::start(emulator, &SystemDisk, &what).await?)
}

/// Tells the user what was imported and what the seed made.
pub fn announce_start(flags: &Flags, started: &Started) {
    if let Some(dir) = &started.passed_over {
        tracing::warn!(
            "{} holds data of Azurite that is not in this store: it changed since it was imported, \
             or never was. To import it, start with another, empty --location and --importAzurite",
            dir.display()
        );
    }
    let mut text = String::new();
    if let Some((dir, report)) = &started.imported {
        let dir = dir.display();
        text += &format!("\nImported from Azurite's {dir}, which stays as it is:\n  {report}\n");
    }
    if let Some(seeded) = &started.seeded {
        let (made, left) = (seeded.made, seeded.left);
        text += &format!("\nSeed: {made} made, {left} there already\n");
    }
    if !flags.silent {
        print(&text);
    }
}

impl Server {
    /// Binds every socket. Azurite's lines, if they are asked for, are printed meanwhile.
    ///
    /// # Errors
    /// Which address is taken, or what is wrong with the certificate.
    pub async fn bind(flags: &Flags, emulator: Emulator) -> anyhow::Result<Self> {
        let made = development(flags, &emulator)?;
        let tls = acceptor(flags, made.as_ref())?;
        let is_logged = flags.speaks_as_azurite() && !flags.silent;
        let log = is_logged.then(AccessLog::start).transpose();
        let (log, log_end) = log.context("the access log cannot be started")?.unzip();
        let listeners = sockets::bind_services(flags, tls.as_ref(), log).await?;
        let control = sockets::bind_control(flags, &emulator).await?;
        let services = listeners
            .iter()
            .map(|listener| Ok((listener.service(), listener.address()?)));
        let endpoints = Endpoints {
            scheme: scheme(flags),
            services: services.collect::<io::Result<_>>()?,
            control: control.address()?,
        };
        Ok(Server {
            emulator,
            listeners,
            control,
            endpoints,
            made,
            voice: Voice::of(flags),
            log_end,
            ready_file: None,
        })
    }

    /// The bound address of a service, if it was started.
    pub fn address(&self, service: Service) -> Option<SocketAddr> {
        self.endpoints.of(service)
    }

    /// The bound address of the control endpoint.
    pub fn control_address(&self) -> SocketAddr {
        self.endpoints.control
    }

    /// Tells the user where everything is, and whoever waits for the ready file.
    ///
    /// # Errors
    /// When the ready file cannot be written.
    pub fn announce(&mut self, flags: &Flags) -> anyhow::Result<()> {
        if !flags.silent {
            print(&announce::text(self, flags));
            if self.endpoints.is_beyond_loopback() && flags.accounts.is_none() {
                tracing::warn!(
                    "listening beyond loopback with the public key: anybody who reaches this port \
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

    /// Serves until `stop` is ready, lets requests in flight end, closes the store.
    ///
    /// # Errors
    /// When the store cannot be closed cleanly.
    pub async fn run(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let (stopping, stopped) = watch::channel(false);
        let mut tasks = tokio::task::JoinSet::new();
        let services: Vec<Service> = self.listeners.iter().map(Listener::service).collect();
        for listener in self.listeners {
            tasks.spawn(listener.serve(self.emulator.clone(), wait(stopped.clone())));
        }
        tasks.spawn(self.control.serve(wait(stopped.clone())));
        tasks.spawn(maintain(self.emulator.clone(), wait(stopped)));
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
        // The receivers are alive in the tasks.
        let _ = stopping.send(true);
        while tasks.join_next().await.is_some() {}
        self.emulator.close()?;
        if let Some(end) = self.log_end {
            end.reached().await;
        }
        say(Voice::closed).await;
        Ok(())
    }
}

/// Prints at once. A reader that has gone, as `head` goes, is no reason to end.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints, but waits for a reader that stands still only for [`LAST_WORDS`].
async fn print_in_time(text: String) {
    let (done, printed) = oneshot::channel();
    std::thread::spawn(move || {
        print(&text);
        // Nobody waits any more.
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

/// Ready when standard input ends or cannot be read.
pub async fn stdin_end() {
    // Whatever is written there means nothing; either outcome is the end.
    let _ = tokio::io::copy(&mut tokio::io::stdin(), &mut tokio::io::sink()).await;
}

/// Ready at SIGTERM or Ctrl-C. It listens from the moment of this call on: a container's first
/// process gets no signal that it has not asked for, and opening a store takes time.
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

/// Ready at Ctrl-C.
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
