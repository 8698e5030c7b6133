//! Measures a hierarchical account: renames of a directory with very many files and of one of its
//! files, pages of it beside those of a flat account, and its deletion.
//!
//! While the directory is renamed, a reader asks for pages of the container; each page must name
//! the directory entirely by its old name or entirely by its new one. On disk the server is killed
//! right after the last rename, and must have it when it is back.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use http::Method;
use indicatif::ProgressBar;
use smalt_protocol::Service;
use tokio::time::Instant;

use super::report::{self, Row};
use super::requests::Requests;
use super::scale::{self, fill_container, ms};
use crate::check::exit_code;
use crate::servers::smalt::{Launch, binary};
use crate::servers::{Running, ServerError};
use crate::wire::connection::Connection;

/// Name of the container.
const CONTAINER: &str = "many";
/// The directory's names, which take turns.
const NAMES: [&str; 2] = ["from", "to"];
/// Number of renames: an even one, so that the directory has its first name again.
const RENAMES: usize = 20;
/// Largest time of a rename, in milliseconds.
const RENAME_MS_MAX: f64 = 50.0;
/// Largest ratio of a page's time to that of a flat account with as many files.
const PAGE_MAX: f64 = 1.3;
/// Number of pages that are read while the directory is renamed.
const WATCHED: usize = 100;
/// Most names in a page.
const PAGE: usize = 5_000;
/// Time to list pages of each account, in seconds.
const PAGES_S: f64 = 3.0;

/// Options of `harness bench rename`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Number of files in the directory.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    files: u64,
    /// The `smalt` binary; by default the one next to this executable.
    #[arg(long, value_name = "FILE")]
    smalt: Option<PathBuf>,
    /// Exit with code 1 if a target is missed; otherwise the table only shows it.
    #[arg(long)]
    require: bool,
}

/// A server that keeps its state in memory or on disk.
struct Lake {
    launch: Launch,
    server: Running,
    requests: Requests,
}

impl Lake {
    async fn start(launch: Launch) -> Result<Self, ServerError> {
        let server = launch.start().await?;
        Ok(Lake {
            launch,
            server,
            requests: Requests::default(),
        })
    }

    /// Sends a request about a path of the container, on a connection of its own, because the
    /// server closes one that is idle while files are made. Returns the time in milliseconds.
    async fn ask(
        &mut self,
        (method, path): (Method, &str),
        headers: &[(&'static str, &str)],
        status: u16,
    ) -> Result<f64, ServerError> {
        let path = self.requests.path(&format!("{CONTAINER}/{path}"));
        let mut connection = Connection::open(self.server.address(Service::Blob)).await?;
        let begun = Instant::now();
        let answer = connection.send(method, &path, headers, "").await?;
        let took = begun.elapsed();
        answer.expect(status)?;
        Ok(ms(took))
    }

    async fn rename(&mut self, from: &str, to: &str) -> Result<f64, ServerError> {
        let source = format!("/{CONTAINER}/{from}");
        let path = format!("{to}?mode=legacy");
        let headers = [("x-ms-rename-source", source.as_str())];
        self.ask((Method::PUT, &path), &headers, 201).await
    }

    /// Renames there and back; returns the times in milliseconds.
    async fn renames(&mut self, names: [&str; 2]) -> Result<Vec<f64>, ServerError> {
        let mut times = Vec::with_capacity(RENAMES);
        let [mut from, mut to] = names;
        for _ in 0..RENAMES {
            times.push(self.rename(from, to).await?);
            std::mem::swap(&mut from, &mut to);
        }
        Ok(times)
    }

    /// Kills the server behind a rename, starts it again, and looks for the directory.
    async fn survive(mut self) -> Result<Self, ServerError> {
        let [from, to] = NAMES;
        self.rename(from, to).await?;
        self.server.process.kill().await?;
        let mut lake = Lake::start(self.launch).await?;
        lake.ask((Method::HEAD, from), &[], 404).await?;
        lake.ask((Method::HEAD, &file(to)), &[], 200).await?;
        lake.rename(to, from).await?;
        Ok(lake)
    }
}

/// Returns the path of the first file of a directory.
fn file(directory: &str) -> String {
    format!("{directory}/{}", Requests::blob_name(0))
}

/// Returns the values of an element in a page.
fn names(page: &str) -> impl Iterator<Item = &str> {
    let after = page.split("<Name>").skip(1);
    after.filter_map(|rest| Some(rest.split_once("</Name>")?.0))
}

/// Fails unless a page is full, and has one of the directory's names only.
fn judge(page: &str, files: u64) -> Result<(), String> {
    let first: Vec<_> = names(page)
        .filter_map(|name| name.split('/').next())
        .collect();
    let expected = usize::try_from(files + 1).map_or(PAGE, |all| all.min(PAGE));
    let whole = |name: &&str| first.iter().all(|one| one == name);
    if first.len() == expected && NAMES.iter().any(whole) {
        return Ok(());
    }
    let of = |name: &str| first.iter().filter(|one| **one == name).count();
    let [from, to] = NAMES.map(of);
    let all = first.len();
    Err(format!(
        "a page during a rename has {all} names instead of {expected}: {from} old, {to} new"
    ))
}

/// Reads [`WATCHED`] first pages of the container.
async fn read(address: SocketAddr, files: u64) -> Result<(), ServerError> {
    let mut connection = Connection::open(address).await?;
    let page = Requests::default().page(CONTAINER, "");
    for _ in 0..WATCHED {
        let answer = connection.send(Method::GET, &page, &[], "").await?;
        let body = answer.expect(200)?.body;
        judge(&String::from_utf8_lossy(&body), files).map_err(ServerError::Call)?;
    }
    Ok(())
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A row of milliseconds, limited to [`RENAME_MS_MAX`] if it is a rename's.
fn row(line: String, value_ms: f64, is_rename: bool) -> Row {
    Row {
        line,
        unit: "ms",
        smalt: Some(value_ms),
        target: if is_rename {
            format!("< {RENAME_MS_MAX} ms")
        } else {
            "-".to_owned()
        },
        reached: is_rename.then_some(value_ms < RENAME_MS_MAX),
        ..Row::default()
    }
}

fn renamed(what: &str, times: &[f64]) -> [Row; 2] {
    let most = times.iter().copied().fold(0.0, f64::max);
    [
        row(format!("rename {what}, median"), median(times), true),
        row(format!("rename {what}, at most"), most, true),
    ]
}

fn page_row(lake_ms: f64, flat_ms: f64) -> Row {
    Row {
        reference: Some(flat_ms),
        target: format!("<= {PAGE_MAX} x a flat one"),
        reached: Some(lake_ms <= PAGE_MAX * flat_ms),
        ..row(format!("page of {PAGE}"), lake_ms, false)
    }
}

/// Measures a server of one kind; also checks that no page shows a rename half done.
async fn measure(lake: Launch, files: u64, is_durable: bool) -> anyhow::Result<Vec<Row>> {
    let [from, to] = NAMES;
    let flat = Launch {
        location: lake.location.with_extension("flat"),
        flags: lake.flags.clone(),
        ..lake.clone()
    };
    let mut lake = lake;
    let flags = ["--hierarchicalNamespace", "--dfsPort", "0"];
    lake.flags.extend(flags.map(str::to_owned));
    let mut lake = Lake::start(lake).await?;
    let place = format!("{CONTAINER}/{from}");
    fill_container(&lake.server, CONTAINER, &place, files).await?;
    let first = lake.rename(from, to).await?;
    let mut rows = vec![row(format!("rename of {files}, first"), first, true)];
    rows.extend(renamed(
        &format!("of {files}"),
        &lake.renames([to, from]).await?,
    ));

    let reader = tokio::spawn(read(lake.server.address(Service::Blob), files));
    let mut watched = Vec::new();
    while !reader.is_finished() {
        watched.extend(lake.renames([to, from]).await?);
    }
    reader.await??;
    rows.extend(renamed(&format!("beside {WATCHED} pages"), &watched));
    lake.rename(to, from).await?;

    let (one, other) = (file(from), format!("{from}/renamed"));
    rows.extend(renamed("of one file", &lake.renames([&one, &other]).await?));
    let flat = flat.start().await?;
    fill_container(&flat, CONTAINER, CONTAINER, files).await?;
    let flat_ms = scale::page_ms(&flat, CONTAINER, PAGES_S).await?;
    flat.process.kill().await?;
    let lake_ms = scale::page_ms(&lake.server, CONTAINER, PAGES_S).await?;
    rows.push(page_row(lake_ms, flat_ms));
    if is_durable {
        lake = lake.survive().await?;
    }
    let path = format!("{from}?recursive=true");
    let deleted = lake.ask((Method::DELETE, &path), &[], 200).await?;
    rows.push(row(format!("deletion of {files}"), deleted, false));
    lake.ask((Method::HEAD, &one), &[], 404).await?;
    lake.server.process.kill().await?;
    Ok(rows)
}

/// Runs the command; prints a table for each kind of store.
///
/// # Errors
/// When a server does not start or rejects a request, when a page shows a rename half done, or when
/// a rename is lost.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let temporary = tempfile::tempdir()?;
    let binary = binary(options.smalt.as_deref())?;
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    let mut missed = false;
    for (kind, flag) in [
        ("in memory", Some("--inMemoryPersistence")),
        ("durable", None),
    ] {
        bar.set_message(format!("{kind}, {} files", options.files));
        let launch = Launch {
            binary: binary.clone(),
            location: Path::join(temporary.path(), kind),
            flags: flag.map(str::to_owned).into_iter().collect(),
        };
        let rows = measure(launch, options.files, flag.is_none()).await?;
        bar.suspend(|| {
            print!("{}", report::heading().replace("hyper*", "flat"));
            println!("{kind}");
            rows.iter().for_each(|row| print!("{}", report::line(row)));
        });
        missed |= rows.iter().any(|row| row.reached == Some(false));
    }
    Ok(exit_code(!(options.require && missed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with both names, a third one, or too few names is not accepted.
    #[test]
    fn half_a_rename_is_found() {
        let page = |all: &[&str]| {
            let of = |name: &&str| format!("<Blob><Name>{name}</Name></Blob>");
            all.iter().map(of).collect::<String>()
        };
        assert_eq!(judge(&page(&["from", "from/a", "from/b"]), 2), Ok(()));
        assert_eq!(judge(&page(&["to", "to/a", "to/b"]), 2), Ok(()));
        for half in [
            page(&["from", "from/a", "to/b"]),
            page(&["from", "from/a"]),
            page(&["other", "other/a", "other/b"]),
        ] {
            assert!(judge(&half, 2).is_err(), "{half}");
        }
    }

    #[test]
    fn slow_renames_and_pages_miss_their_targets() {
        let reached = |rows: &[Row]| rows.iter().map(|row| row.reached).collect::<Vec<_>>();
        let rows = renamed("x", &[1.0, 2.0, 50.0]);
        assert_eq!(reached(&rows), [Some(true), Some(false)]);
        let pages = [page_row(13.0, 10.0), page_row(13.1, 10.0)];
        assert_eq!(reached(&pages), [Some(true), Some(false)]);
    }
}
