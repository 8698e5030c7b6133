//! Tests of batches: the forms that clients send, the form of answers, and malformed batches.

use super::*;
use proptest::prelude::*;

const TYPE: &str = "multipart/mixed; boundary=batch_1";

fn code(content_type: &str, body: &[u8]) -> Option<ErrorCode> {
    read(content_type, body).err().map(|error| error.code())
}

/// Builds a change set with these line ends; `inner` are whole requests.
fn changes_of(inner: &[&str], line_end: &str) -> String {
    let mut body = "--batch_1\nContent-Type: multipart/mixed; boundary=changeset_2\n\n".to_owned();
    for request in inner {
        body += "--changeset_2\nContent-Type: application/http\n\
                 Content-Transfer-Encoding: binary\nContent-ID: 0\n\n";
        body += request;
        body.push('\n');
    }
    body += "--changeset_2--\n\n--batch_1--\n";
    body.replace('\n', line_end)
}

const INSERT: &str = "POST https://a.table.core.windows.net/t?$format=x HTTP/1.1\n\
    Content-ID: 7\nAccept: application/json;odata=minimalmetadata\nContent-Length: 2\n\n{}";
const DELETE: &str = "DELETE /t(PartitionKey='a b',RowKey='r') HTTP/1.1\nIf-Match: *\n";

#[test]
fn change_sets_are_parsed_with_either_line_end() {
    for line_end in ["\n", "\r\n"] {
        let body = changes_of(&[INSERT, DELETE], line_end);
        let Batch::Changes(requests) = read(TYPE, body.as_bytes()).unwrap() else {
            panic!("no change set");
        };
        let [insert, delete] = requests.as_slice() else {
            panic!("{requests:?}");
        };
        assert_eq!(
            (insert.method.as_str(), insert.body.as_slice()),
            ("POST", &b"{}"[..])
        );
        assert_eq!(insert.path_and_query(), "/t?$format=x");
        assert_eq!(insert.content_id(), Some("7"));
        assert_eq!(insert.headers.len(), 3);
        assert_eq!(delete.target, "/t(PartitionKey='a b',RowKey='r')");
        assert_eq!(delete.path_and_query(), delete.target);
        assert_eq!(delete.header("if-match"), Some("*"));
        assert_eq!((delete.content_id(), delete.body.len()), (None, 0));
    }
}

#[test]
fn a_preamble_a_quoted_boundary_and_a_missing_last_line_end_are_accepted() {
    let body = changes_of(&[INSERT], "\r\n")
        .replace("\r\n\r\n--changeset_2\r\n", "\r\n\r\n\r\n--changeset_2\r\n");
    let body = format!("ignored\r\n{}", body.trim_end());
    let quoted = "Multipart/Mixed;charset=x; Boundary=\"batch_1\"";
    assert!(
        matches!(read(quoted, body.as_bytes()), Ok(Batch::Changes(changes)) if changes.len() == 1)
    );
}

#[test]
fn a_query_is_parsed() {
    let body = "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\
                \r\n\r\nGET http://h/t()?$filter=A%20eq%201 HTTP/1.1\r\nAccept: a/b\r\n\r\n\
                --batch_1--";
    let Batch::Query(query) = read(TYPE, body.as_bytes()).unwrap() else {
        panic!("no query");
    };
    assert_eq!(query.path_and_query(), "/t()?$filter=A%20eq%201");
    assert_eq!(query.header("ACCEPT"), Some("a/b"));
}

#[test]
fn malformed_batches_are_rejected() {
    let one = changes_of(&[INSERT], "\r\n");
    let get = INSERT.replace("POST", "GET");
    let two_sets = one.replacen(
        "\r\n--batch_1--",
        "\r\n--batch_1\r\nContent-Type: a/b\r\n\r\n--batch_1--",
        1,
    );
    let write = "--batch_1\nContent-Type: application/http\n\nPUT /t HTTP/1.1\n\n{}\n--batch_1--";
    let many_headers = INSERT.replace("Content-ID: 7\n", &"A: b\n".repeat(101));
    for (name, body) in [
        ("empty", String::new()),
        ("no boundary line", "x".to_owned()),
        ("not closed", one.replace("--batch_1--", "")),
        ("set not closed", one.replace("--changeset_2--", "")),
        ("no part", "--batch_1--".to_owned()),
        ("no requests", changes_of(&[], "\n")),
        ("a query among writes", changes_of(&[&get], "\n")),
        ("two sets", two_sets),
        ("a write outside", write.to_owned()),
        (
            "nested",
            one.replace("application/http", "multipart/mixed; boundary=x"),
        ),
        (
            "no media",
            one.replace("Content-Type: application/http\r\n", ""),
        ),
        ("no colon", changes_of(&["POST / HTTP/1.1\nA b\n\n"], "\n")),
        (
            "folded",
            changes_of(&["POST / HTTP/1.1\nA: b\n c: d\n\n"], "\n"),
        ),
        ("headers", changes_of(&[&many_headers], "\n")),
        ("no version", changes_of(&["POST /"], "\n")),
        ("another version", changes_of(&["POST / HTTP/2"], "\n")),
        ("no target", changes_of(&["POST HTTP/1.1"], "\n")),
        ("no method", changes_of(&["p / HTTP/1.1"], "\n")),
        ("nothing", changes_of(&[""], "\n")),
    ] {
        assert_eq!(
            code(TYPE, body.as_bytes()),
            Some(ErrorCode::InvalidInput),
            "{name}"
        );
    }
    for content_type in [
        "",
        "application/json",
        "multipart/mixed",
        "multipart/mixed; boundary=",
        "multipart/form-data; boundary=batch_1",
        "multipart/mixed; boundary=ü",
    ] {
        let got = code(content_type, one.as_bytes());
        assert_eq!(got, Some(ErrorCode::InvalidInput), "{content_type}");
    }
    let not_text = [one.as_bytes(), b""].concat();
    let not_text: Vec<u8> = not_text
        .iter()
        .map(|byte| if *byte == b'j' { 0xff } else { *byte })
        .collect();
    assert_eq!(code(TYPE, &not_text), Some(ErrorCode::InvalidInput));
}

#[test]
fn counts_and_sizes_are_bounded() {
    let many = |count: usize| {
        let body = changes_of(&vec![INSERT; count], "\n");
        read(TYPE, body.as_bytes()).unwrap()
    };
    assert!(matches!(many(100), Batch::Changes(changes) if changes.len() == 100));
    for count in [101, 1_000] {
        assert!(matches!(many(count), Batch::Overfull(first) if first.len() == 100));
    }
    let (place, error) = overfull();
    let message = "99:The batch request operation exceeds the maximum 100 changes per change set.";
    let said = indexed(error, place, 101);
    assert_eq!(
        (said.code(), said.message()),
        (ErrorCode::InvalidInput, message)
    );
    let large = vec![b'\n'; BATCH_BODY_BYTES_MAX as usize + 1];
    assert_eq!(code(TYPE, &large), Some(ErrorCode::RequestBodyTooLarge));
    assert_eq!(code(TYPE, &large[1..]), Some(ErrorCode::InvalidInput));
}

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Answer {
        status,
        headers: headers.iter().map(owned).collect(),
        body: body.as_bytes().to_vec(),
    }
}

#[test]
fn answers_match_the_recordings() {
    let answers = [
        answer(
            204,
            &[("Content-ID", "1"), ("DataServiceVersion", "1.0;")],
            "",
        ),
        answer(201, &[("Cache-Control", "no-cache")], "{}"),
    ];
    let head = "--batchresponse_1\r\n\
                Content-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n";
    let part = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
    let expected = format!(
        "{head}--changesetresponse_2\r\n{part}HTTP/1.1 204 No Content\r\nContent-ID: 1\r\n\
         DataServiceVersion: 1.0;\r\n\r\n\r\n--changesetresponse_2\r\n\
         {part}HTTP/1.1 201 Created\r\nCache-Control: no-cache\r\n\r\n{{}}\r\n\
         --changesetresponse_2--\r\n--batchresponse_1--\r\n"
    );
    let written = write_changes("batchresponse_1", "changesetresponse_2", &answers);
    assert_eq!(String::from_utf8(written).unwrap(), expected);
    let query = write_query("b", &answer(200, &[], "{}"));
    assert_eq!(
        String::from_utf8(query).unwrap(),
        format!("--b\r\n{part}HTTP/1.1 200 OK\r\n\r\n{{}}\r\n--b--\r\n")
    );
}

#[test]
fn errors_have_the_index_of_their_write() {
    let error = StorageError::new(ErrorCode::InvalidDuplicateRow).with_message("x");
    assert_eq!(indexed(error.clone(), 1, 2).message(), "1:x");
    assert_eq!(indexed(error.clone(), 0, 2).message(), "0:x");
    assert_eq!(indexed(error, 0, 1).message(), "x");
}

proptest! {
    #[test]
    fn requests_parse_back(
        requests in proptest::collection::vec(
            ("(PUT|POST|MERGE|DELETE)", "/[!-~]{1,20}", "[a-z]{1,9}", "[!-~]{0,9}", "[!-~]{0,30}"),
            1..6,
        ),
        is_lf in any::<bool>(),
    ) {
        let texts: Vec<_> = requests
            .iter()
            .map(|(method, target, name, value, body)| {
                format!("{method} {target} HTTP/1.1\n{name}: {value}\n\n{body}")
            })
            .collect();
        prop_assume!(!texts.iter().any(|text| text.contains("://") || text.contains("\n--")));
        let inner: Vec<_> = texts.iter().map(String::as_str).collect();
        let body = changes_of(&inner, if is_lf { "\n" } else { "\r\n" });
        let Batch::Changes(read) = read(TYPE, body.as_bytes()).unwrap() else {
            panic!("no change set");
        };
        prop_assert_eq!(read.len(), requests.len());
        for (read, (method, target, name, value, body)) in read.iter().zip(&requests) {
            prop_assert_eq!(&read.method, method);
            prop_assert_eq!(read.path_and_query(), target);
            prop_assert_eq!(read.header(name), Some(value.as_str()));
            prop_assert_eq!(&read.body, body.as_bytes());
        }
    }

    /// Cuts, doubles and changes pieces of a well-formed batch at random.
    #[test]
    fn damaged_batches_are_parsed_or_rejected(
        cuts in proptest::collection::vec((0_usize..600, 0_usize..60, 0_u8..3, any::<u8>()), 1..6),
        is_lf in any::<bool>(),
    ) {
        let whole = changes_of(&[INSERT, DELETE], if is_lf { "\n" } else { "\r\n" });
        let mut body = whole.into_bytes();
        for (at, length, what, byte) in cuts {
            let at = at.min(body.len());
            let until = (at + length).min(body.len());
            match what {
                0 => drop(body.drain(at..until)),
                1 => {
                    let piece = body[at..until].to_vec();
                    body.splice(at..at, piece);
                }
                _ => body[at..until].fill(byte),
            }
        }
        if let Ok(Batch::Changes(requests)) = read(TYPE, &body) {
            prop_assert!((1..=100).contains(&requests.len()));
            requests.iter().for_each(|request| {
                let _ = request.path_and_query();
            });
        }
    }

    #[test]
    fn any_bytes_are_parsed_or_rejected(
        content_type in "(multipart/mixed; ?boundary=)?.{0,20}",
        pieces in proptest::collection::vec(
            prop_oneof![
                "--b\r?\n",
                "--b--",
                "Content-Type: (application/http|multipart/mixed; boundary=b)\r?\n",
                "\r?\n",
                "GET / HTTP/1.1",
                ".",
            ],
            0..30,
        ),
    ) {
        let body = pieces.concat();
        let _ = read(&content_type, body.as_bytes());
        let _ = read("multipart/mixed; boundary=b", body.as_bytes());
    }
}
