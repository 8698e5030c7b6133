//! Compares queues of a million messages with queues of a thousand.
//!
//! In a round a connection puts 32 messages, gets 32, and deletes each of them.

use std::net::SocketAddr;
use std::process::ExitCode;

use http::Method;
use smalt_protocol::{Service, uri};
use tokio::time::Instant;

use super::lengths::{self, Many, Rounder, Spent};
use super::lines::CONNECTIONS;
use super::load;
use super::requests::Requests;
use crate::histories::documents;
use crate::servers::ServerError;
use crate::wire::connection::Connection;

const NAME: &str = "many";
/// Messages per round.
const BATCH: usize = 32;
/// Visibility timeout in seconds, longer than any run: messages that were received stay hidden.
const HIDDEN_S: u64 = 3_600;

/// Options of `harness bench queue`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Number of messages in the long queue.
    #[arg(long, default_value_t = 100_000)]
    messages: u64,
    #[command(flatten)]
    lengths: lengths::Options,
}

struct Messages;

/// Indexes of the steps.
const PUT: usize = 0;
const GET: usize = 1;
const DELETE: usize = 2;

impl Many for Messages {
    const SERVICE: Service = Service::Queue;
    const NAME: &'static str = "messages";
    const PEER_MIN: Option<f64> = None;
    const STEPS: &'static [&'static str] = &["put", "get 32", "delete"];

    async fn fill(address: SocketAddr, count: u64) -> Result<(), ServerError> {
        load::once(address, &Requests::default().queue(NAME)?).await?;
        let requests = Requests::default();
        let put = move |_| requests.tiny_message(NAME);
        load::send_all(address, CONNECTIONS, count, put).await
    }

    async fn rounds(rounder: Rounder, spent: &mut Spent) -> Result<(), ServerError> {
        let mut connection = Connection::open(rounder.address).await?;
        let access = &rounder.access;
        let put = access.path(&format!("{NAME}/messages"));
        let body = "<QueueMessage><MessageText>One of very many.</MessageText></QueueMessage>";
        let get = format!("{NAME}/messages?numofmessages={BATCH}&visibilitytimeout={HIDDEN_S}");
        let get = access.path(&get);
        while Instant::now() < rounder.end {
            for _ in 0..BATCH {
                let begun = Instant::now();
                let put = connection.send(Method::POST, &put, &[], body).await?;
                put.expect(201)?;
                spent.note(PUT, begun);
            }
            let begun = Instant::now();
            let got = connection.send(Method::GET, &get, &[], "").await?;
            let got = got.expect(200)?;
            spent.note(GET, begun);
            let messages = documents::messages(&got.body).map_err(ServerError::call)?;
            if messages.len() != BATCH {
                let text = format!("{} messages instead of {BATCH}", messages.len());
                return Err(ServerError::Call(text));
            }
            for message in messages {
                let receipt = uri::encode_query(&message.receipt.unwrap_or_default());
                let path = format!("{NAME}/messages/{}?popreceipt={receipt}", message.id);
                let path = access.path(&path);
                let begun = Instant::now();
                let deleted = connection.send(Method::DELETE, &path, &[], "").await?;
                deleted.expect(204)?;
                spent.note(DELETE, begun);
            }
        }
        Ok(())
    }
}

/// Runs the command.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    lengths::run::<Messages>(&options.lengths, options.messages).await
}
