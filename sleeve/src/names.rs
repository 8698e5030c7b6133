//! Checks names and builds URLs from them.
//!
//! The SDK joins names to the endpoint by the rules of URLs, which change some of them: `.` and
//! `..` disappear (the request would then go to the container!), tabs and line ends are dropped. A
//! name that would not arrive unchanged is rejected here.

use azure_core::http::Url;
use percent_encoding::percent_decode_str;
use smalt_protocol::{names, uri};

use crate::port::{BlobId, Metadata};

pub(crate) fn check_container(name: &str) -> Result<(), String> {
    names::validate_container_name(name).map_err(|_| format!("{name:?} is not a container name"))
}

pub(crate) fn check_queue(name: &str) -> Result<(), String> {
    names::validate_queue_name(name).map_err(|_| format!("{name:?} is not a queue name"))
}

/// Checks a blob name, and that `joined`, the URL built by the SDK, still contains it.
pub(crate) fn check_blob(blob: &BlobId, joined: &Url) -> Result<(), String> {
    check_container(&blob.container)?;
    names::validate_blob_name(&blob.name)
        .map_err(|_| format!("{:?} is not a blob name", blob.name))?;
    let last = joined.path().rsplit('/').next().unwrap_or_default();
    if percent_decode_str(last).decode_utf8().ok().as_deref() == Some(blob.name.as_str()) {
        return Ok(());
    }
    Err(format!(
        "the blob name {:?} cannot be sent in a URL",
        blob.name
    ))
}

/// Checks metadata: the SDK writes it to headers, which carry only printable ASCII.
pub(crate) fn check_metadata(metadata: &Metadata) -> Result<(), String> {
    for (name, value) in metadata {
        names::validate_metadata_name(name)
            .map_err(|_| format!("{name:?} is not a metadata name"))?;
        if !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(format!(
                "the metadata value of {name:?} has characters other than printable ASCII; \
                 escape it first"
            ));
        }
        if value.trim() != value {
            return Err(format!(
                "the metadata value of {name:?} starts or ends with a space, which HTTP drops"
            ));
        }
    }
    Ok(())
}

/// Formats index tags for the header `x-ms-tags`, as a query string (Set Blob Tags).
pub(crate) fn tags_header(tags: &Metadata) -> String {
    let pairs = tags
        .iter()
        .map(|(name, value)| format!("{}={}", uri::encode_query(name), uri::encode_query(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Returns the URL of a blob without credentials. Slashes stay unescaped, except where URL rules
/// would change the name (`a//b`, `a/../b`).
pub(crate) fn blob_url(endpoint: &Url, blob: &BlobId) -> String {
    let base = endpoint.as_str().trim_end_matches('/');
    let fragile = blob
        .name
        .split('/')
        .any(|part| matches!(part, "" | "." | ".."));
    let name = if fragile {
        uri::encode_query(&blob.name)
    } else {
        uri::encode_path(&blob.name)
    };
    format!("{base}/{}/{name}", uri::encode_path(&blob.container))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_a_query() {
        let tags = [("a b", "1+2"), ("c", "")];
        let tags = tags.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(tags_header(&Metadata::from(tags)), "a%20b=1%2B2&c=");
    }

    #[test]
    fn urls_keep_names() {
        let endpoint: Url = "http://127.0.0.1:10000/acct/".parse().unwrap();
        let table = [
            ("b", "b"),
            ("a/b.txt", "a/b.txt"),
            ("a b?c#d%e+f", "a%20b%3Fc%23d%25e%2Bf"),
            ("ä/ö", "%C3%A4/%C3%B6"),
            ("a//b", "a%2F%2Fb"),
            ("a/../b", "a%2F..%2Fb"),
            ("a/", "a%2F"),
        ];
        for (name, path) in table {
            let url = blob_url(&endpoint, &BlobId::new("c", name));
            assert_eq!(url, format!("http://127.0.0.1:10000/acct/c/{path}"));
            // Parsing the URL changes nothing in it.
            assert_eq!(url.parse::<Url>().unwrap().as_str(), url);
        }
    }

    #[test]
    fn metadata_is_printable_ascii() {
        let of = |name: &str, value: &str| Metadata::from([(name.to_owned(), value.to_owned())]);
        for (name, value) in [
            ("TimeToLive", "2026-11-21T00:00:00Z"),
            ("a_1", ""),
            ("A", "a b~"),
        ] {
            assert_eq!(check_metadata(&of(name, value)), Ok(()), "{name}");
        }
        for (name, value) in [
            ("1a", "x"),
            ("a-b", "x"),
            ("é", "x"),
            ("日", "x"),
            ("a", "é"),
            ("a", "x\ny"),
            ("a", " x"),
            ("a", "\t"),
        ] {
            assert!(
                check_metadata(&of(name, value)).is_err(),
                "{name} {value:?}"
            );
        }
    }
}
