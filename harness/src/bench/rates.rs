//! Operations per second, line by line.

use super::lines::{CONNECTIONS, LARGE_BYTES, Rate};
use super::load::{self, Shots};
use super::requests::Requests;
use crate::servers::{Running, ServerError};

/// Creates the containers, queues, tables and contents that the lines need.
pub async fn prepare(server: &Running) -> Result<(), ServerError> {
    for (rate, shot) in Requests::default().preparation(CONNECTIONS + 1)? {
        load::once(server.address(rate.service()), &shot).await?;
    }
    Ok(())
}

/// Returns the length of a line's answer, which the bare server must match.
pub async fn answer_length(server: &Running, rate: Rate) -> Result<u64, ServerError> {
    // Uses the number of a connection that does not exist, because an entity can be inserted only
    // once.
    let shots = Requests::default().of(rate, CONNECTIONS, 0)?;
    let shot = shots.at(0)?;
    load::once(server.address(rate.service()), &shot).await
}

/// Measures a line, in operations or MiB per second.
pub async fn measure(
    server: &Running,
    rate: Rate,
    length: u64,
    seconds: f64,
) -> Result<f64, ServerError> {
    let requests = Requests::default();
    let shots: Result<Vec<Shots>, ServerError> = (0..rate.connections())
        .map(|connection| requests.of(rate, connection, length))
        .collect();
    let measured = load::drive(server.address(rate.service()), shots?, seconds).await?;
    let per_second = measured.per_second();
    Ok(if rate.is_large() {
        per_second * (LARGE_BYTES as f64) / (1024.0 * 1024.0)
    } else {
        per_second
    })
}
