//! Operations per second, one line after another.

use super::lines::{CONNECTIONS, LARGE_BYTES, Rate};
use super::load::{self, Shots};
use super::requests::Requests;
use super::servers::Server;
use crate::servers::ServerError;

/// Makes what the lines need.
///
/// # Errors
/// When the server refuses.
pub async fn prepare(server: &Server) -> Result<(), ServerError> {
    for (rate, shot) in Requests::default().preparation(CONNECTIONS + 1)? {
        load::once(server.address(rate.service()), &shot).await?;
    }
    Ok(())
}

/// The bytes of a line's answer: what the bare server must answer with too.
///
/// # Errors
/// When the server refuses.
pub async fn answer_length(server: &Server, rate: Rate) -> Result<u64, ServerError> {
    // Of a connection that will not be there: an entity is inserted once.
    let shots = Requests::default().of(rate, CONNECTIONS, 0)?;
    let shot = shots.at(0)?;
    load::once(server.address(rate.service()), &shot).await
}

/// Measures a line: operations or MiB a second.
///
/// # Errors
/// At the first answer that is not as it must be.
#[expect(clippy::cast_precision_loss, reason = "a few MiB")]
pub async fn measure(
    server: &Server,
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
