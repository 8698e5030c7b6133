//! With very many blobs and messages: pages, start-up, memory.

use std::path::Path;
use std::time::Duration;

use http::Method;
use smalt_protocol::Service;
use tokio::time::Instant;

use super::lines::CONNECTIONS;
use super::load;
use super::requests::Requests;
use super::servers::{Server, Start};
use crate::servers::ServerError;
use crate::wire::connection::Connection;

/// Blobs of the container that a page is compared with.
const FEW: u64 = 10_000;
/// Starts of which the quickest counts: the system's noise only ever adds.
const STARTS: usize = 5;

/// What was measured of one server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scaled {
    /// Milliseconds of a page of 5,000 of 10,000.
    pub page_of_few_ms: f64,
    /// Milliseconds of a page of 5,000 of very many.
    pub page_of_many_ms: f64,
    /// Milliseconds to the first answer, nothing stored.
    pub start_empty_ms: f64,
    /// Milliseconds to the first answer, much stored.
    pub start_full_ms: f64,
    /// Resident memory in MiB, nothing stored.
    pub idle_mib: Option<f64>,
    /// Resident memory in MiB after the puts.
    pub full_mib: Option<f64>,
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Measures a server on an empty directory with so many blobs and messages.
///
/// # Errors
/// When the server does not start or refuses.
pub async fn measure(
    start: &Start,
    dir: &Path,
    blobs: u64,
    seconds: f64,
) -> Result<Scaled, ServerError> {
    let mut scaled = Scaled {
        start_empty_ms: f64::INFINITY,
        ..Scaled::default()
    };
    for attempt in 0..STARTS {
        let location = dir.join(format!("empty-{attempt}"));
        let (server, took) = start.start(&location).await?;
        scaled.start_empty_ms = scaled.start_empty_ms.min(ms(took));
        scaled.idle_mib = server.resident_mib();
        server.kill().await?;
    }
    let location = dir.join("full");
    let (server, _) = start.start(&location).await?;
    fill(&server, blobs).await?;
    scaled.full_mib = server.resident_mib();
    scaled.page_of_few_ms = page_ms(&server, "few", seconds).await?;
    scaled.page_of_many_ms = page_ms(&server, "many", seconds).await?;
    server.kill().await?;
    let (server, took) = start.start(&location).await?;
    scaled.start_full_ms = ms(took);
    server.kill().await?;
    Ok(scaled)
}

async fn fill(server: &Server, blobs: u64) -> Result<(), ServerError> {
    let requests = Requests::default();
    let (blob, queue) = (
        server.address(Service::Blob),
        server.address(Service::Queue),
    );
    for (container, count) in [("few", FEW.min(blobs)), ("many", blobs)] {
        load::once(blob, &requests.container(container)?).await?;
        let requests = requests.clone();
        load::send_all(blob, CONNECTIONS, count, move |number| {
            requests.tiny_blob(container, number)
        })
        .await?;
    }
    load::once(queue, &requests.queue("many")?).await?;
    load::send_all(queue, CONNECTIONS, blobs, move |_| {
        requests.tiny_message("many")
    })
    .await
}

/// The mean time of a page, from the first to the last and again.
async fn page_ms(server: &Server, container: &str, seconds: f64) -> Result<f64, ServerError> {
    let requests = Requests::default();
    let mut connection = Connection::open(server.address(Service::Blob)).await?;
    let begun = Instant::now();
    let (mut marker, mut pages, mut spent) = (String::new(), 0_u32, Duration::ZERO);
    while pages == 0 || begun.elapsed().as_secs_f64() < seconds {
        let path = requests.page(container, &marker);
        let asked = Instant::now();
        let answer = connection.send(Method::GET, &path, &[], "").await?;
        spent += asked.elapsed();
        let body = answer.expect(200)?.body;
        marker = next_marker(&String::from_utf8_lossy(&body));
        pages += 1;
    }
    Ok(ms(spent) / f64::from(pages))
}

fn next_marker(text: &str) -> String {
    let after = text.split_once("<NextMarker>").map(|(_, after)| after);
    let marker = after.and_then(|after| after.split_once("</NextMarker>"));
    marker.map_or_else(String::new, |(marker, _)| marker.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_found() {
        assert_eq!(next_marker("<a><NextMarker>2!4</NextMarker></a>"), "2!4");
        assert_eq!(next_marker("<a><NextMarker /></a>"), "");
    }
}
