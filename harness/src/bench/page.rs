//! The sweeper's cost of a listing page: processor time of this process, compared with that of a
//! client that only requests with hyper and parses the XML with quick-xml.
//!
//! Three clients take turns listing the same container of the same service, 5,000 blobs per page:
//! the bare client, the sleeve's listing, and the sweeper's plan, which lists with the sleeve and
//! decides about every blob.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use indicatif::ProgressBar;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use smalt_protocol::{ApiVersion, Service, Timestamp};
use smalt_sleeve::port::{CallContext, ListBlobs, Storage};
use smalt_sweeper::{Accounts, Prices, Sweeper, SweeperConfig, SweptContainer};

use super::servers::Start;
use crate::fleet::place::Address;
use crate::fleet::sweep::{ask, blobs::Blobs};
use crate::servers::smalt::binary;
use crate::servers::{ServerError, files};
use crate::wire::access::Access;
use crate::wire::connection::Connection;

/// Blobs per page: Azure's maximum.
const PAGE: u32 = 5_000;
/// Pages in the container.
const PAGES: u32 = 4;
/// Number of times that each client lists the container.
const TURNS: u32 = 25;
/// Largest ratio of the sweeper's cost to the bare client's.
const RATIO_MAX: f64 = 2.0;

/// Options of `harness bench page`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The `smalt` binary; by default the one next to this executable.
    #[arg(long, value_name = "FILE")]
    smalt: Option<PathBuf>,
}

/// The parts of a blob that the sweeper uses.
#[derive(Debug, Default, PartialEq, Eq)]
struct Item {
    name: String,
    etag: String,
    last_modified: String,
    length: u64,
    metadata: Vec<(String, String)>,
}

/// Parses a page with as little work as possible.
fn parse(page: &str) -> Result<(Vec<Item>, String), ServerError> {
    let mut reader = Reader::from_str(page);
    let (mut items, mut marker): (Vec<Item>, String) = (Vec::new(), String::new());
    let (mut element, mut text) = (String::new(), String::new());
    let mut in_metadata = false;
    loop {
        match reader.read_event().map_err(ServerError::call)? {
            Event::Start(start) => {
                text.clear();
                element.clear();
                element.push_str(start.name().as_ref());
                match element.as_str() {
                    "Blob" => items.push(Item::default()),
                    "Metadata" => in_metadata = true,
                    _ => {}
                }
            }
            Event::Text(part) => text.push_str(&part),
            Event::GeneralRef(part) => {
                text.push_str(resolve_predefined_entity(&part).unwrap_or(""));
            }
            Event::End(end) => {
                let name = end.name();
                let is = |wanted: &str| name.as_ref() == wanted;
                match items.last_mut() {
                    _ if is("NextMarker") => marker.clone_from(&text),
                    _ if is("Metadata") => in_metadata = false,
                    Some(item) if in_metadata => {
                        item.metadata.push((element.clone(), text.clone()));
                    }
                    Some(item) if is("Name") => item.name.clone_from(&text),
                    Some(item) if is("Etag") => item.etag.clone_from(&text),
                    Some(item) if is("Last-Modified") => item.last_modified.clone_from(&text),
                    Some(item) if is("Content-Length") => {
                        item.length = text.parse().map_err(ServerError::call)?;
                    }
                    _ => {}
                }
            }
            Event::Eof => return Ok((items, marker)),
            _ => {}
        }
    }
}

/// The three clients.
struct Listers {
    connection: Connection,
    access: Access,
    storage: Arc<dyn Storage>,
    sweeper: Sweeper,
    container: String,
}

impl Listers {
    async fn open(address: SocketAddr, container: String) -> anyhow::Result<Self> {
        let storage = open(address)?;
        let config = SweeperConfig {
            containers: vec![SweptContainer {
                account: "default".to_owned(),
                container: container.clone(),
                prefix: String::new(),
            }],
            page_size: PAGE,
            ..SweeperConfig::default()
        };
        let accounts = Accounts::new().with("default", storage.clone());
        Ok(Listers {
            connection: Connection::open(address).await?,
            access: Access::full(ApiVersion::V2021_12_02),
            storage,
            sweeper: Sweeper::new(config, accounts, 0)?,
            container,
        })
    }

    async fn bare(&mut self) -> anyhow::Result<u64> {
        let (mut marker, mut blobs) = (String::new(), 0);
        loop {
            let path = self.access.path(&format!(
                "{}?restype=container&comp=list&include=copy,metadata&maxresults={PAGE}&marker={}",
                self.container,
                smalt_protocol::uri::encode_query(&marker)
            ));
            let answer = self.connection.send(Method::GET, &path, &[], "").await?;
            let body = answer.expect(200)?.body;
            let (items, next) = parse(std::str::from_utf8(&body)?)?;
            blobs += items.len() as u64;
            marker = next;
            if marker.is_empty() {
                return Ok(blobs);
            }
        }
    }

    async fn sleeve(&self) -> anyhow::Result<u64> {
        let mut list = ListBlobs {
            page_size: PAGE,
            ..ListBlobs::default()
        };
        let mut blobs = 0;
        loop {
            let cx = CallContext::default();
            let page = self.storage.list_blobs(&cx, &self.container, &list).await?;
            blobs += page.blobs.len() as u64;
            list.marker = page.next_marker;
            if list.marker.is_none() {
                return Ok(blobs);
            }
        }
    }

    async fn sweeper(&self) -> anyhow::Result<u64> {
        let plan = self.sweeper.plan(Prices::default(), 0, |_| {}).await?;
        Ok(plan.total.seen)
    }
}

fn open(address: SocketAddr) -> Result<Arc<dyn Storage>, ServerError> {
    Address::of_emulator(address).open()
}

/// Returns the processor time of this process so far.
fn spent() -> anyhow::Result<Duration> {
    let spent = files::cpu_time(std::process::id());
    spent.ok_or_else(|| anyhow::anyhow!("this system does not report processor time in /proc"))
}

/// Adds the processor time of a listing with the expected number of blobs.
async fn timed(
    total: &mut Duration,
    expected: u64,
    listing: impl Future<Output = anyhow::Result<u64>>,
) -> anyhow::Result<()> {
    let before = spent()?;
    let blobs = listing.await?;
    anyhow::ensure!(blobs == expected, "{blobs} blobs instead of {expected}");
    *total += spent()?.saturating_sub(before);
    Ok(())
}

/// Runs the command; prints a line per client, and fails when the sweeper costs too much.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let temporary = tempfile::tempdir()?;
    let smalt = Start::Smalt(binary(options.smalt.as_deref())?);
    let (server, _) = smalt.start(temporary.path()).await?;
    let address = server.address(Service::Blob);
    let mut blobs = Blobs {
        count: u64::from(PAGES * PAGE),
        containers: 1,
        seed: 0,
        now: Timestamp::MIN,
    };
    blobs.now = ask::prepare(open(address)?.as_ref(), blobs.containers()).await?;
    let all = (0..blobs.count).collect();
    ask::fill(address, &blobs, all, &ProgressBar::hidden()).await?;
    let container = blobs.place(0).container;
    let mut listers = Listers::open(address, container).await?;
    let (mut bare, mut sleeve, mut sweeper) = Default::default();
    // Turn 0 only opens the connections and is not counted.
    for turn in 0..=TURNS {
        if turn == 1 {
            (bare, sleeve, sweeper) = Default::default();
        }
        timed(&mut bare, blobs.count, listers.bare()).await?;
        timed(&mut sleeve, blobs.count, listers.sleeve()).await?;
        timed(&mut sweeper, blobs.count, listers.sweeper()).await?;
    }
    server.process.kill().await?;
    let pages = f64::from(TURNS * PAGES);
    let ratio = |total: Duration| total.as_secs_f64() / bare.as_secs_f64().max(f64::EPSILON);
    println!("a page of {PAGE} blobs, {pages} pages each: processor time");
    for (name, total) in [
        ("hyper and quick-xml", bare),
        ("the sleeve's listing", sleeve),
        ("the sweeper's page", sweeper),
    ] {
        let per_page_ms = total.as_secs_f64() * 1_000.0 / pages;
        println!("{name:22} {per_page_ms:7.2} ms {:6.2} times", ratio(total));
    }
    if ratio(sweeper) <= RATIO_MAX {
        return Ok(ExitCode::SUCCESS);
    }
    println!("a page costs the sweeper more than {RATIO_MAX} times what it costs the bare client");
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_parsed() {
        let page = "<?xml version=\"1.0\"?><EnumerationResults><Blobs><Blob><Name>a &amp; b</Name>\
            <Properties><Last-Modified>then</Last-Modified><Etag>0x1</Etag>\
            <Content-Length>7</Content-Length></Properties><Metadata><Note>n</Note>\
            <TimeToLive>P1D</TimeToLive></Metadata></Blob></Blobs><NextMarker>m</NextMarker>\
            </EnumerationResults>";
        let (items, marker) = parse(page).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = Item {
            name: "a & b".to_owned(),
            etag: "0x1".to_owned(),
            last_modified: "then".to_owned(),
            length: 7,
            metadata: vec![pair("Note", "n"), pair("TimeToLive", "P1D")],
        };
        assert_eq!((items, marker.as_str()), (vec![expected], "m"));
    }
}
