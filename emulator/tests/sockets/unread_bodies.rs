//! Bodies that are not read: their senders are answered at once, and the connection stays open.

use smalt::http::Patience;

use super::served::{LARGE, Served};

/// A refusal does not wait for the body, however large; a request after the body is answered too.
#[tokio::test]
async fn refusal_is_sent_before_the_body_ends() {
    let served = Served::new(Patience::default()).await;
    let mut raw = served.connect().await;
    for _ in 0..2 {
        let length = format!("Content-Length: {LARGE}");
        raw.say(served.put("missing", &length)).await;
        assert_eq!(raw.hear().await, (404, false));
        raw.say(vec![b'x'; LARGE]).await;
        raw.say(served.get()).await;
        assert_eq!(raw.hear().await, (404, false));
    }
}

/// The same when only the last chunk shows the length.
#[tokio::test]
async fn refused_chunked_body_is_read_to_its_end() {
    let served = Served::new(Patience::default()).await;
    let mut raw = served.connect().await;
    raw.say(served.put("missing", "Transfer-Encoding: chunked"))
        .await;
    let (status, ends) = raw.hear().await;
    assert!(status >= 400 && !ends, "{status}");
    for _ in 0..2_000 {
        raw.say("4\r\nmany\r\n").await;
    }
    raw.say("0\r\n\r\n").await;
    raw.say(served.get()).await;
    assert_eq!(raw.hear().await, (404, false));
}

/// A client that waits for `100 Continue` and is refused gets the refusal with `Connection: close`.
#[tokio::test]
async fn refused_expect_continue_closes_the_connection() {
    let served = Served::new(Patience::default()).await;
    let mut raw = served.connect().await;
    let asks = "Content-Length: 4\r\nExpect: 100-continue";
    raw.say(served.put("missing", asks)).await;
    assert_eq!(raw.hear().await, (404, true));
    assert!(raw.is_at_its_end().await);

    let mut raw = served.connect().await;
    raw.say(served.put("made", asks)).await;
    assert_eq!(raw.hear().await, (100, false));
    raw.say("body").await;
    assert_eq!(raw.hear().await, (201, false));
    raw.say(served.get()).await;
    assert_eq!(raw.hear().await, (200, false));
}

/// When a body stalls, the response has `Connection: close`.
#[tokio::test]
async fn stalled_body_closes_the_connection() {
    let served = Served::new(Patience::of_ms(50)).await;
    let mut raw = served.connect().await;
    raw.say(served.put("made", "Content-Length: 4")).await;
    raw.say("bo").await;
    assert_eq!(raw.hear().await, (400, true));
    assert!(raw.is_at_its_end().await);
}
