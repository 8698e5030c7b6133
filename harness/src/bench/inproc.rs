//! Calls without a socket, in memory, on a clock that only moves on request: the cost in tests.

use std::time::Duration;

use http::Method;
use smalt::{Clock, Emulator, Timestamp};
use smalt_protocol::{ApiVersion, Service};
use tokio::time::Instant;

use crate::servers::ServerError;
use crate::wire::access::Access;
use crate::wire::in_process;

const BLOB: Service = Service::Blob;
const QUEUE: Service = Service::Queue;
/// The operations: Put Blob, Get Blob, Get Blob Properties and Set Blob Metadata; Put Message and
/// Peek Messages.
const MIXTURE: [(&str, Service, &str, u16); 6] = [
    ("PUT", BLOB, "bench/blob", 201),
    ("GET", BLOB, "bench/blob", 200),
    ("HEAD", BLOB, "bench/blob", 200),
    ("PUT", BLOB, "bench/blob?comp=metadata", 200),
    ("POST", QUEUE, "bench/messages", 201),
    ("GET", QUEUE, "bench/messages?peekonly=true", 200),
];
/// Number of messages after which the queue is cleared, to bound its length.
const CLEARED_AFTER: u64 = 10_000;

/// Measures operations per second of one caller.
pub async fn measure(seconds: f64) -> Result<f64, ServerError> {
    let clock = Clock::manual(Timestamp::from_unix_s(1_700_000_000));
    let opened = Emulator::builder().clock(clock).seed(1).open();
    let emulator = opened.map_err(ServerError::call)?;
    let access = Access::full(ApiVersion::V2021_12_02);
    call(
        &emulator,
        &access,
        ("PUT", BLOB, "bench?restype=container", 201),
    )
    .await?;
    call(&emulator, &access, ("PUT", QUEUE, "bench", 201)).await?;
    let begun = Instant::now();
    let (mut rounds, limit) = (0_u64, Duration::from_secs_f64(seconds));
    while begun.elapsed() < limit {
        for step in MIXTURE {
            call(&emulator, &access, step).await?;
        }
        rounds += 1;
        if rounds.is_multiple_of(CLEARED_AFTER) {
            call(&emulator, &access, ("DELETE", QUEUE, "bench/messages", 204)).await?;
        }
    }
    let operations = rounds * MIXTURE.len() as u64;
    Ok(operations as f64 / begun.elapsed().as_secs_f64())
}

async fn call(
    emulator: &Emulator,
    access: &Access,
    (method, service, path, status): (&str, Service, &str, u16),
) -> Result<(), ServerError> {
    let content = match method {
        "POST" => "<QueueMessage><MessageText>A message.</MessageText></QueueMessage>",
        "PUT" if path.ends_with("/blob") => "The content of a small blob.",
        _ => "",
    };
    let method = Method::from_bytes(method.as_bytes()).map_err(ServerError::call)?;
    let (path, headers) = (access.path(path), [("x-ms-blob-type", "BlockBlob")]);
    let sent = in_process::send(emulator, service, (method, &path), &headers, content);
    sent.await?.expect(status)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_operation_gets_its_expected_answer() {
        assert!(measure(0.01).await.unwrap() > 0.0);
    }
}
