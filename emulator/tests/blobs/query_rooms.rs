//! Queries over sockets: their responses need rooms, which clients that do not read lose.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::{IpAddr, Ipv4Addr};

use http_body_util::BodyExt as _;
use smalt::{Body, Socket};

use crate::support::{Client, request};

const ROOMS: usize = 8;

async fn with_rows() -> Client {
    let client = Client::new();
    client.create("box").await;
    client.put("/box/b", "1,one\n".repeat(100_000)).await;
    client
}

/// Sends a query over a socket, and reads only the head of the response.
async fn ask(client: &Client) -> (u16, Body) {
    let url = client.signed_url("box", "b", "r");
    let asked = "<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT * FROM BlobStorage\
                 </Expression></QueryRequest>";
    let length = asked.len().to_string();
    let headers = [("host", "127.0.0.1:10000"), ("content-length", &length)];
    let request = request("POST", &format!("{url}&comp=query"), &headers, asked);
    let socket = Socket {
        peer: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        ..Socket::default()
    };
    let answer = client.emulator().call_on(request, socket).await.unwrap();
    (answer.status().as_u16(), answer.into_body())
}

/// A stalled reader keeps its room until another query waits for one. Other readers continue.
#[tokio::test(start_paused = true)]
async fn stalled_reader_loses_its_room_when_others_wait() {
    let client = with_rows().await;
    let mut answers = Vec::new();
    for _ in 0..ROOMS {
        let (status, answer) = ask(&client).await;
        assert_eq!(status, 200);
        answers.push(answer);
    }
    tokio::time::sleep(std::time::Duration::from_secs(3_600)).await;
    let mut first = answers.remove(0);
    let piece = first.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(piece.starts_with(b"Obj\x01"));

    let (status, last) = ask(&client).await;
    assert_eq!(status, 200);
    for kept in [first, last] {
        let rest = kept.collect().await.unwrap().to_bytes();
        assert!(rest.len() > 600_000 && rest.ends_with(&rest[rest.len() - 16..]));
    }
    let mut lost = 0;
    for answer in answers {
        lost += usize::from(answer.collect().await.is_err());
    }
    assert_eq!(lost, 1);
}

/// A dropped response frees its room at once.
#[tokio::test(start_paused = true)]
async fn dropped_response_frees_its_room() {
    let client = with_rows().await;
    let started = tokio::time::Instant::now();
    for _ in 0..3 * ROOMS {
        let (status, answer) = ask(&client).await;
        assert_eq!(status, 200);
        drop(answer);
    }
    assert_eq!(started.elapsed(), std::time::Duration::ZERO);
}
