//! The texts that a message may have: all text that XML allows, and nothing else.

use bytes::Bytes;
use proptest::prelude::*;

use super::client::{Client, Held, document};

const INVALID: &str = "400 InvalidXmlDocument";

fn framed(bytes: &[u8]) -> Bytes {
    let mut body = b"<QueueMessage><MessageText>".to_vec();
    body.extend_from_slice(bytes);
    body.extend_from_slice(b"</MessageText></QueueMessage>");
    body.into()
}

/// Every control character except tab and line ends, raw and as a reference, in put and update.
#[tokio::test]
async fn control_characters_are_refused() {
    let client = Client::new().await;
    let held = client.put("a", "").await;
    let allowed = [0x09, 0x0a, 0x0d];
    let codes = (0..0x20_u32).filter(|code| !allowed.contains(code));
    for code in codes.chain([0xfffe, 0xffff]) {
        let raw = char::from_u32(code).unwrap().to_string();
        let reference = format!("&#x{code:x};");
        for text in [raw.as_str(), reference.as_str()] {
            let body = framed(format!("a{text}b").as_bytes());
            let put = client.send("POST", "/que/messages", body.clone()).await;
            let path = held.path("&visibilitytimeout=0");
            let update = client.send("PUT", &path, body).await;
            for answer in [put, update] {
                assert_eq!(answer.outcome(), INVALID, "{code:#x} {text}");
                for element in ["LineNumber", "LinePosition", "Reason"] {
                    assert_ne!(answer.one(element), "", "{element} of {code:#x}");
                }
            }
        }
    }
    assert_eq!(client.visible().await, ["a"]);
}

/// Bytes that are not UTF-8: cut, overlong, surrogates, Latin-1, UTF-16.
#[tokio::test]
async fn invalid_utf_8_is_refused() {
    let client = Client::new().await;
    let held = client.put("a", "").await;
    for bytes in [
        &b"\xff"[..],
        b"\xc3",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf5\x80\x80\x80",
        b"caf\xe9",
    ] {
        let put = client.send("POST", "/que/messages", framed(bytes)).await;
        assert_eq!(put.outcome(), INVALID, "{bytes:?}");
        let path = held.path("&visibilitytimeout=0");
        let update = client.send("PUT", &path, framed(bytes)).await;
        assert_eq!(update.outcome(), INVALID, "{bytes:?}");
    }
    let wide: Vec<u8> = document("a")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(
        client.send("POST", "/que/messages", wide).await.outcome(),
        INVALID
    );
    assert_eq!(client.visible().await, ["a"]);
}

/// Refuses a body that is not a message document.
#[tokio::test]
async fn only_message_documents_are_accepted() {
    let client = Client::new().await;
    for body in [
        "",
        " ",
        "text",
        "<QueueMessage/>",
        "<QueueMessage><Text>a</Text></QueueMessage>",
        "<MessageText>a</MessageText>",
        "<QueueMessage><MessageText>a</QueueMessage></MessageText>",
        "<QueueMessage><MessageText>a</MessageText>",
        "<QueueMessage><MessageText>&unknown;</MessageText></QueueMessage>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><QueueMessage><MessageText>&b;</MessageText></QueueMessage>",
        "<QueueMessage><MessageText>a</MessageText></QueueMessage><More/>",
    ] {
        let answer = client.send("POST", "/que/messages", body).await;
        assert_eq!(answer.outcome(), INVALID, "{body}");
    }
    assert_eq!(client.count().await, 0);
}

/// "Unescaped markup is dropped"; escaped markup, white space and any plane of Unicode stay.
#[tokio::test]
async fn texts_are_returned_as_they_were_sent() {
    for (sent, kept) in [
        ("", ""),
        (" a\tb ", " a\tb "),
        ("a\nb", "a\nb"),
        ("&lt;a&gt; &amp; &quot;", "&lt;a&gt; &amp; \""),
        ("<![CDATA[<a>]]>", "&lt;a&gt;"),
        ("a<b>c</b>d", "ad"),
        ("grüße 😀 \u{10ffff}", "grüße 😀 \u{10ffff}"),
        ("&#x41;&#66;", "AB"),
        ("aGVsbG8=", "aGVsbG8="),
    ] {
        let client = Client::new().await;
        client.put(sent, "").await;
        let got = client.get("").await;
        let after = got.text.split("<MessageText>").nth(1);
        let text = after.and_then(|rest| rest.split("</MessageText>").next());
        // An empty text may be written either way.
        assert_eq!(text.unwrap_or_default(), kept, "{sent}");
        assert_eq!(client.delete(&Held::of(&got)).await, "204");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any bytes as a text are accepted and returned again, or refused; peek answers.
    #[test]
    fn arbitrary_bytes_are_kept_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let client = Client::new().await;
            let put = client.send("POST", "/que/messages", framed(&bytes)).await;
            let is_taken = put.outcome() == "201";
            assert!(is_taken || put.outcome() == INVALID, "{}", put.text);
            assert_eq!(client.visible().await.len(), usize::from(is_taken));
        });
    }
}
