//! The load generator: connections that send requests back to back.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::servers::ServerError;
use crate::wire::connection::Connection;

/// A request, with its expected status.
#[derive(Clone, Debug)]
pub struct Shot {
    /// The request to send.
    pub request: Request<Full<Bytes>>,
    /// The expected status.
    pub status: u16,
}

/// The requests of one connection, sent in sequence.
pub enum Shots {
    /// Repeats these requests.
    Cycle(Vec<Shot>),
    /// Creates each request from its number.
    Fresh(Box<dyn Fn(u64) -> Result<Shot, ServerError> + Send + Sync>),
}

impl Shots {
    /// Returns the request with this number.
    pub fn at(&self, number: u64) -> Result<Cow<'_, Shot>, ServerError> {
        match self {
            Shots::Fresh(make) => make(number).map(Cow::Owned),
            Shots::Cycle(shots) => {
                let place = number.checked_rem(shots.len() as u64);
                let place = place.and_then(|place| usize::try_from(place).ok());
                let shot = place.and_then(|place| shots.get(place));
                let none = || ServerError::Call("nothing to send".to_owned());
                shot.map(Cow::Borrowed).ok_or_else(none)
            }
        }
    }
}

/// Time before counting starts, to open connections and warm caches.
const WARM_UP: Duration = Duration::from_millis(300);

/// The result of a measurement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// Number of operations with the expected answer.
    pub operations: u64,
    /// Measured time, in seconds.
    pub seconds: f64,
}

impl Measured {
    /// Returns operations per second.
    pub fn per_second(self) -> f64 {
        self.operations as f64 / self.seconds.max(f64::EPSILON)
    }
}

/// Sends a request and returns the length of the answer's body.
async fn fire(connection: &mut Connection, shot: &Shot) -> Result<u64, ServerError> {
    let (head, mut body) = connection.pass(shot.request.clone()).await?.into_parts();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(ServerError::call)?;
        length += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
    let status = head.status.as_u16();
    if status == shot.status {
        return Ok(length);
    }
    let code = head.headers.get("x-ms-error-code");
    Err(ServerError::Call(format!(
        "{} {}: {status} {code:?} instead of {}",
        shot.request.method(),
        shot.request.uri().path(),
        shot.status
    )))
}

/// Drives a server for a time; each connection sends its own requests.
pub async fn drive(
    address: SocketAddr,
    shots: Vec<Shots>,
    seconds: f64,
) -> Result<Measured, ServerError> {
    let begin = Instant::now() + WARM_UP;
    let end = begin + Duration::from_secs_f64(seconds);
    let mut lines = JoinSet::new();
    for own in shots {
        lines.spawn(async move {
            let mut line = Connection::open(address).await?;
            let mut counted = 0;
            for number in 0.. {
                let shot = own.at(number)?;
                let started = Instant::now();
                if started >= end {
                    break;
                }
                fire(&mut line, &shot).await?;
                counted += u64::from(started >= begin);
            }
            Ok::<u64, ServerError>(counted)
        });
    }
    let mut measured = Measured::default();
    while let Some(done) = lines.join_next().await {
        measured.operations += done.map_err(ServerError::call)??;
    }
    // The last answers arrive after the end, so their time counts as well.
    measured.seconds = begin.elapsed().as_secs_f64();
    Ok(measured)
}

/// Sends `count` requests over many connections, each request once.
pub async fn send_all(
    address: SocketAddr,
    connections: usize,
    total: u64,
    make: impl Fn(u64) -> Result<Shot, ServerError> + Send + Sync + 'static,
) -> Result<(), ServerError> {
    let (next, make) = (Arc::new(AtomicU64::new(0)), Arc::new(make));
    let mut lines = JoinSet::new();
    for _ in 0..connections {
        let (next, make) = (next.clone(), make.clone());
        lines.spawn(async move {
            let mut line = Connection::open(address).await?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= total {
                    return Ok::<(), ServerError>(());
                }
                fire(&mut line, &make(number)?).await?;
            }
        });
    }
    while let Some(done) = lines.join_next().await {
        done.map_err(ServerError::call)??;
    }
    Ok(())
}

/// Sends one request on its own connection and returns the length of the answer's body.
pub async fn once(address: SocketAddr, shot: &Shot) -> Result<u64, ServerError> {
    fire(&mut Connection::open(address).await?, shot).await
}
