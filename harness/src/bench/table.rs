//! Compares tables of a million entities with tables of a thousand.
//!
//! A partition has a thousand entities, so that a query by key range finds the same number whatever
//! the size of the table. In a round a connection inserts an entity, reads an existing one, queries
//! a hundred entities of a partition by range, and deletes the inserted one.

use std::net::SocketAddr;
use std::process::ExitCode;

use http::Method;
use smalt_protocol::{Service, uri};
use tokio::time::Instant;

use super::lengths::{self, Many, Rounder, Spent};
use super::lines::CONNECTIONS;
use super::load;
use super::requests::{self, ENTITY_HEADERS, Requests};
use crate::servers::ServerError;
use crate::wire::connection::Connection;

const NAME: &str = "many";
/// Entities per partition.
const PARTITION: u64 = 1_000;
/// Number of entities that a query finds.
const RANGE: u64 = 100;
/// Distance between consecutive reads: coprime to the usual sizes, so that reads cover the whole
/// table.
const STRIDE: u64 = 7_919;

/// Options of `harness bench table`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Number of entities in the long table.
    #[arg(long, default_value_t = 100_000)]
    entities: u64,
    #[command(flatten)]
    lengths: lengths::Options,
}

struct Entities;

/// Indexes of the steps.
const INSERT: usize = 0;
const GET: usize = 1;
const QUERY: usize = 2;
const DELETE: usize = 3;

/// Returns the keys of the entity with this number.
fn keys(number: u64) -> (String, String) {
    (
        format!("p{:06}", number / PARTITION),
        format!("r{:06}", number % PARTITION),
    )
}

impl Many for Entities {
    const SERVICE: Service = Service::Table;
    const NAME: &'static str = "entities";
    const PEER_MIN: Option<f64> = Some(20.0);
    const STEPS: &'static [&'static str] = &["insert", "get", "query 100", "delete"];

    async fn fill(address: SocketAddr, count: u64) -> Result<(), ServerError> {
        load::once(address, &Requests::default().table(NAME)?).await?;
        let requests = Requests::default();
        let insert = move |number| {
            let (partition, row) = keys(number);
            requests.entity(NAME, &partition, &row)
        };
        load::send_all(address, CONNECTIONS, count, insert).await
    }

    async fn rounds(rounder: Rounder, spent: &mut Spent) -> Result<(), ServerError> {
        let mut connection = Connection::open(rounder.address).await?;
        let access = &rounder.access;
        let insert = access.path(NAME);
        let mut place = rounder.number as u64 * STRIDE + u64::from(rounder.turn);
        for own in 0_u64.. {
            if Instant::now() >= rounder.end {
                break;
            }
            place = (place + STRIDE) % rounder.count;
            let (partition, row) = keys(place);
            // Sorts after the rows of the partition, where no other connection inserts.
            let new = format!("s{:03}-{own:09}", rounder.number);
            let body = requests::entity(&partition, &new);
            let begun = Instant::now();
            let sent = connection.send(Method::POST, &insert, &ENTITY_HEADERS, body);
            sent.await?.expect(204)?;
            spent.note(INSERT, begun);

            let get = access.path(&requests::entity_path(NAME, &partition, &row));
            let begun = Instant::now();
            let got = connection.send(Method::GET, &get, &ENTITY_HEADERS, "");
            got.await?.expect(200)?;
            spent.note(GET, begun);

            let from = place % (PARTITION - RANGE);
            let filter = format!(
                "PartitionKey eq '{partition}' and RowKey ge 'r{from:06}' and RowKey lt 'r{:06}'",
                from + RANGE
            );
            let query = format!("{NAME}()?$filter={}", uri::encode_query(&filter));
            let query = access.path(&query);
            let begun = Instant::now();
            let found = connection.send(Method::GET, &query, &ENTITY_HEADERS, "");
            let found = found.await?.expect(200)?;
            spent.note(QUERY, begun);
            let found = found.body.windows(8).filter(|name| name == b"\"RowKey\"");
            let found = found.count() as u64;
            if found != RANGE.min(rounder.count.saturating_sub(from)) {
                let text = format!("{found} entities instead of {RANGE}: {filter}");
                return Err(ServerError::Call(text));
            }

            let delete = access.path(&requests::entity_path(NAME, &partition, &new));
            let headers = [ENTITY_HEADERS.as_slice(), &[("if-match", "*")]].concat();
            let begun = Instant::now();
            let deleted = connection.send(Method::DELETE, &delete, &headers, "");
            deleted.await?.expect(204)?;
            spent.note(DELETE, begun);
        }
        Ok(())
    }
}

/// Runs the command.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    lengths::run::<Entities>(&options.lengths, options.entities.max(PARTITION)).await
}
