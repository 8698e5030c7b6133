//! Tests that names arrive unchanged or are rejected.

use super::service::{Service, cx, reply};
use crate::ErrorKind;
use crate::port::*;
use percent_encoding::percent_decode_str;
use proptest::prelude::*;

async fn sent(blob: &BlobId) -> Result<String, ErrorKind> {
    let service = Service::with([reply(202, &[], "")]);
    let storage = service.storage();
    let done = storage
        .delete_blob(&cx(), blob, &Conditions::default(), DeleteSnapshots::Refuse)
        .await;
    done.map_err(|error| error.kind)?;
    Ok(service.seen()[0].request.uri().path().to_owned())
}

#[tokio::test]
async fn blob_names_arrive_unchanged() {
    let names = [
        "b.txt",
        "a b",
        "a%20b",
        "100%",
        "a?b#c",
        "ä/ö",
        "日本/語",
        "a//b",
        "/a",
        "a/",
        "a/../b",
        "./a",
        "...",
        "a+b&c=d",
        "'\"<>|^`{}[]\\~",
        "$root",
        "sig=x",
        ";:@,!*()",
        " a",
        "a ",
        "%2e%2e",
        "\u{feff}x",
        "😀",
    ];
    for name in names {
        let path = sent(&BlobId::new("cont", name)).await;
        let path = path.unwrap_or_else(|kind| panic!("{name:?} is refused: {kind:?}"));
        let encoded = path.strip_prefix("/acct/cont/").unwrap();
        assert_eq!(
            percent_decode_str(encoded).decode_utf8().unwrap(),
            name,
            "{path}"
        );
    }
}

/// `.` and `..` would address the container, so a delete would delete all of it.
#[tokio::test]
async fn names_changed_by_url_rules_are_rejected() {
    let long = "x".repeat(1025);
    for name in [".", "..", "", "a\tb", "a\nb", "a\r", "\u{1}", &long] {
        let refused = sent(&BlobId::new("cont", name)).await;
        assert_eq!(refused, Err(ErrorKind::Invalid), "{name:?}");
    }
    for container in ["", ".", "..", "ab", "Cont", "a/b", "cont?x", "-cont"] {
        let refused = sent(&BlobId::new(container, "b")).await;
        assert_eq!(refused, Err(ErrorKind::Invalid), "{container:?}");
    }
    for container in ["$root", "$web", "$logs"] {
        assert!(
            sent(&BlobId::new(container, "b")).await.is_ok(),
            "{container}"
        );
    }
}

#[tokio::test]
async fn metadata_unfit_for_headers_is_rejected() {
    let service = Service::with([]);
    let storage = service.storage();
    for (name, value) in [("a", "é"), ("a-b", "x"), ("", "x"), ("a", "x\r\ny: z")] {
        let metadata = Metadata::from([(name.to_owned(), value.to_owned())]);
        let put = PutBlob {
            metadata: metadata.clone(),
            ..PutBlob::default()
        };
        let blob = BlobId::new("cont", "b");
        let error = storage
            .put_blob(&cx(), &blob, "x".into(), &put)
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        let none = Conditions::default();
        let error = storage
            .set_blob_metadata(&cx(), &blob, &metadata, &none)
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert!(error.message.contains("metadata"), "{error}");
    }
    assert!(service.seen().is_empty());
}

proptest! {
    /// Every name arrives unchanged or is not sent.
    #[test]
    fn names_arrive_unchanged_or_are_not_sent(name in "\\PC{0,12}|[./%\\\\ a]{0,8}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let path = runtime.block_on(sent(&BlobId::new("cont", name.as_str())));
        if let Ok(path) = path {
            let encoded = path.strip_prefix("/acct/cont/").unwrap();
            prop_assert_eq!(percent_decode_str(encoded).decode_utf8().unwrap(), name);
        }
    }
}
