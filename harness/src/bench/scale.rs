//! Page time, start-up time and memory with very many blobs and messages.

use std::path::Path;
use std::time::Duration;

use http::Method;
use smalt_protocol::Service;
use tokio::time::Instant;

use super::lines::CONNECTIONS;
use super::load;
use super::requests::Requests;
use super::servers::Start;
use crate::servers::{Running, ServerError};
use crate::wire::connection::Connection;

/// Number of blobs in the container that serves as reference for a page.
pub const FEW: u64 = 10_000;
/// Number of starts; the fastest one counts, because noise only adds time.
const STARTS: usize = 5;

/// Measurements of one server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scaled {
    /// Milliseconds for a page of 5,000 out of 10,000 blobs.
    pub page_of_few_ms: f64,
    /// Milliseconds for a page of 5,000 out of very many blobs.
    pub page_of_many_ms: f64,
    /// Milliseconds to the first answer with an empty store.
    pub start_empty_ms: f64,
    /// Milliseconds to the first answer with a full store.
    pub start_full_ms: f64,
    /// Resident memory in MiB with an empty store.
    pub idle_mib: Option<f64>,
    /// Resident memory in MiB with a full store.
    pub full_mib: Option<f64>,
}

/// Returns a duration in milliseconds.
pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Measures a server that starts on an empty directory, with `count` blobs and messages.
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
        scaled.idle_mib = server.process.resident_mib();
        server.process.kill().await?;
    }
    let location = dir.join("full");
    let (server, _) = start.start(&location).await?;
    fill(&server, blobs).await?;
    scaled.full_mib = server.process.resident_mib();
    scaled.page_of_few_ms = page_ms(&server, "few", seconds).await?;
    scaled.page_of_many_ms = page_ms(&server, "many", seconds).await?;
    server.process.kill().await?;
    let (server, took) = start.start(&location).await?;
    scaled.start_full_ms = ms(took);
    server.process.kill().await?;
    Ok(scaled)
}

async fn fill(server: &Running, blobs: u64) -> Result<(), ServerError> {
    let requests = Requests::default();
    let queue = server.address(Service::Queue);
    for (container, count) in [("few", FEW.min(blobs)), ("many", blobs)] {
        fill_container(server, container, container, count).await?;
    }
    load::once(queue, &requests.queue("many")?).await?;
    load::send_all(queue, CONNECTIONS, blobs, move |_| {
        requests.tiny_message("many")
    })
    .await
}

/// Creates a container, and this many tiny blobs in a place of it.
pub async fn fill_container(
    server: &Running,
    container: &str,
    place: &str,
    count: u64,
) -> Result<(), ServerError> {
    let (address, requests) = (server.address(Service::Blob), Requests::default());
    load::once(address, &requests.container(container)?).await?;
    let place = place.to_owned();
    let put = move |number| requests.tiny_blob(&place, number);
    load::send_all(address, CONNECTIONS, count, put).await
}

/// Returns the mean time of a page, listing the container repeatedly from start to end.
pub async fn page_ms(server: &Running, container: &str, seconds: f64) -> Result<f64, ServerError> {
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
