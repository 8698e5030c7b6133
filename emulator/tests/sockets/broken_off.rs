//! Requests that end early: nothing is written, and the connection closes at once.

use smalt::http::Patience;

use super::served::Served;

/// The client has closed its side, so the rest never comes. Waiting for it would end only after
/// [`Patience::default`], which is longer than a test waits.
#[tokio::test]
async fn truncated_request_ends_at_once() {
    let served = Served::new(Patience::default()).await;
    let length = "Content-Length: 10";
    let chunked = "Transfer-Encoding: chunked";
    let asks = "Content-Length: 10\r\nExpect: 100-continue";
    for (about, sent, expected) in [
        ("a line", "PUT /".to_owned(), &[][..]),
        (
            "a head",
            served.put("made", length).trim_end().to_owned(),
            &[],
        ),
        ("no body", served.put("made", length), &[400]),
        ("half a body", served.put("made", length) + "short", &[400]),
        (
            "a body that is asked for",
            served.put("made", asks) + "short",
            &[100, 400],
        ),
        (
            "a chunk",
            served.put("made", chunked) + "a\r\nshort",
            &[411],
        ),
        (
            "no last chunk",
            served.put("made", chunked) + "5\r\nshort\r\n",
            &[411],
        ),
        (
            "a refused body",
            served.put("missing", length) + "short",
            &[404],
        ),
    ] {
        let mut raw = served.connect().await;
        raw.say(sent).await;
        raw.finish().await;
        assert_eq!(raw.hear_out().await, expected, "{about}");
        let target = "/made/blob";
        let found = served.client.head(target).await;
        assert_eq!(found.status, 404, "{about}");
    }
}

/// RFC 9112, 6.3: a length beside a transfer coding may hide a second request. The coding counts,
/// and nothing is read after it.
#[tokio::test]
async fn request_with_two_lengths_closes_its_connection() {
    let served = Served::new(Patience::default()).await;
    let (length, chunked) = ("Content-Length: 5", "Transfer-Encoding: chunked");
    for (first, second) in [(length, chunked), (chunked, length)] {
        let both = served.put("made", &format!("{first}\r\n{second}"));
        let mut raw = served.connect().await;
        raw.say(both + "0\r\n\r\n" + &served.get()).await;
        assert_eq!(raw.hear_out().await, [411], "{first}");
    }
}
