//! Tests of the Shared Key strings: vectors 1 to 6 and the rules that depend on the version.

use proptest::prelude::*;

use super::*;
use crate::signing::tests::key;
use crate::uri::parse_query;

const DATE: (&str, &str) = ("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT");
const NEW: (&str, &str) = ("x-ms-version", "2021-12-02");

struct Request<'a> {
    service: Service,
    scheme: Scheme,
    method: &'a str,
    path: &'a str,
    query: &'a str,
    headers: &'a [(&'a str, &'a str)],
}

impl Request<'_> {
    fn with<T>(&self, use_input: impl FnOnce(&SigningInput<'_>) -> T) -> T {
        let version = header(self.headers, "x-ms-version").and_then(ApiVersion::parse);
        use_input(&SigningInput {
            service: self.service,
            scheme: self.scheme,
            version: version.unwrap_or(ApiVersion::LATEST),
            method: self.method,
            account: "devstoreaccount1",
            path: self.path,
            query: &parse_query(self.query).unwrap(),
            headers: self.headers,
        })
    }

    fn text(&self) -> String {
        self.with(string_to_sign)
    }
}

fn check(request: &Request<'_>, expected: &str, signature: &str) {
    assert_eq!(request.text(), expected);
    let key = key();
    assert_eq!(sign(key.as_bytes(), expected), signature);
    assert!(request.with(|input| verify_request(input, key.as_bytes(), signature)));
    let header = request.with(|input| authorization(input, key.as_bytes()));
    assert_eq!(
        parse_authorization(&header).unwrap(),
        Authorization::Key {
            scheme: request.scheme,
            account: "devstoreaccount1".to_owned(),
            signature: signature.to_owned(),
        }
    );
}

#[test]
fn blob_requests_path_and_host_style() {
    let list = Request {
        service: Service::Blob,
        scheme: Scheme::SharedKey,
        method: "GET",
        path: "/devstoreaccount1/mycontainer",
        query: "restype=container&comp=list&include=snapshots&include=metadata",
        headers: &[NEW, ("X-Ms-Date", DATE.1)],
    };
    check(
        &list,
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n\
         x-ms-version:2021-12-02\n/devstoreaccount1/devstoreaccount1/mycontainer\n\
         comp:list\ninclude:metadata,snapshots\nrestype:container",
        "QLNnpNHK4uo6pOKodoswC2x9UtAZgkLWP85Sj0vtjY8=",
    );
    check(
        &Request {
            path: "/mycontainer",
            ..list
        },
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n\
         x-ms-version:2021-12-02\n/devstoreaccount1/mycontainer\n\
         comp:list\ninclude:metadata,snapshots\nrestype:container",
        "cVkwXp1zm3POoiuzIQPKS3Z1FVZrodUXFuUmD+AODCs=",
    );
    let put = Request {
        service: Service::Blob,
        scheme: Scheme::SharedKey,
        method: "PUT",
        path: "/devstoreaccount1/c/b.txt",
        query: "",
        headers: &[
            ("content-length", "11"),
            ("content-type", "text/plain"),
            ("x-ms-blob-type", "BlockBlob"),
            DATE,
            NEW,
        ],
    };
    check(
        &put,
        "PUT\n\n\n11\n\ntext/plain\n\n\n\n\n\n\nx-ms-blob-type:BlockBlob\n\
         x-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2021-12-02\n\
         /devstoreaccount1/devstoreaccount1/c/b.txt",
        "BYdP2A/vZk2wHtH7bxYJ+qpsrqophckleMyI3a0QV5A=",
    );
}

#[test]
fn lite_and_table_requests() {
    let queue = Request {
        service: Service::Queue,
        scheme: Scheme::SharedKeyLite,
        method: "GET",
        path: "/devstoreaccount1/myqueue",
        query: "comp=metadata&timeout=5",
        headers: &[DATE, ("x-ms-version", "2018-03-28")],
    };
    check(
        &queue,
        "GET\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2018-03-28\n\
         /devstoreaccount1/devstoreaccount1/myqueue?comp=metadata",
        "PkzxKuCSYH31oFu74MY9tIWETSsqS73pfMU/G1GtPYg=",
    );
    let table = Request {
        service: Service::Table,
        scheme: Scheme::SharedKey,
        method: "GET",
        path: "/devstoreaccount1/Tables",
        query: "$top=1",
        headers: &[DATE],
    };
    check(
        &table,
        "GET\n\n\nFri, 26 Jun 2015 23:39:12 GMT\n/devstoreaccount1/devstoreaccount1/Tables",
        "1N8+ef8oEDi2+hVq8MEliRQf2wg+Azc23mueaSqF0Fs=",
    );
    check(
        &Request {
            scheme: Scheme::SharedKeyLite,
            ..table
        },
        "Fri, 26 Jun 2015 23:39:12 GMT\n/devstoreaccount1/devstoreaccount1/Tables",
        "VuaBO8Q8Lunn8jBU8fntlFomiNq5rTcfxYB1f9a0Mb8=",
    );
}

fn blob<'a>(headers: &'a [(&'a str, &'a str)]) -> Request<'a> {
    let (service, scheme) = (Service::Blob, Scheme::SharedKey);
    Request {
        service,
        scheme,
        method: "PUT",
        path: "/c/b",
        query: "",
        headers,
    }
}

#[test]
fn empty_bodies_and_headers_depend_on_the_version() {
    for (version, expected) in [
        (
            "2014-02-14",
            "PUT\n\n\n0\n\n\n\n\n\n\n\n\nx-ms-version:2014-02-14\n",
        ),
        (
            "2015-02-21",
            "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-version:2015-02-21\n",
        ),
        (
            "2016-05-31",
            "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-tags:\nx-ms-version:2016-05-31\n",
        ),
    ] {
        let headers = [
            ("Content-Length", "0"),
            ("x-ms-tags", " "),
            ("x-ms-version", version),
        ];
        let text = blob(&headers).text();
        assert_eq!(
            text,
            format!("{expected}/devstoreaccount1/c/b"),
            "{version}"
        );
    }
}

#[test]
fn the_date_line_is_used_without_x_ms_date() {
    let text = blob(&[("Date", DATE.1), ("Range", "bytes=0-1")]).text();
    let expected = format!(
        "PUT\n\n\n\n\n\n{}\n\n\n\n\nbytes=0-1\n/devstoreaccount1/c/b",
        DATE.1
    );
    assert_eq!(text, expected);
}

#[test]
fn header_names_sort_as_the_service_sorts_them() {
    for (first, second) in [
        ("x-ms-meta-a", "x-ms-meta-b"),
        ("x-ms-meta-a_1", "x-ms-meta-a1"),
        ("x-ms-meta-a1", "x-ms-meta-ab"),
        ("x-ms-if-tags", "x-ms-immutability"),
        ("x-ms-copy-source", "x-ms-copy-source-authorization"),
        ("x-ms-a-c", "x-ms-ad"),
        ("x-ms-a-b", "x-ms-ab"),
    ] {
        assert_eq!(collate(first, second), Ordering::Less, "{first} {second}");
    }
}

#[test]
fn signers_that_differ_in_small_points_are_accepted() {
    let key = key();
    let headers = [
        ("x-ms-meta-a_1", "x  y"),
        ("x-ms-meta-a1", "z"),
        ("x-ms-version", NEW.1),
    ];
    let request = blob(&headers);
    let byte_order = "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-meta-a1:z\nx-ms-meta-a_1:x y\n\
                      x-ms-version:2021-12-02\n/devstoreaccount1/c/b";
    let signature = sign(key.as_bytes(), byte_order);
    assert!(request.with(|input| verify_request(input, key.as_bytes(), &signature)));
    let secondary = Request {
        path: "/devstoreaccount1-secondary/c",
        ..blob(&[])
    };
    let primary = "PUT\n\n\n\n\n\n\n\n\n\n\n\n/devstoreaccount1/devstoreaccount1/c";
    let signature = sign(key.as_bytes(), primary);
    assert!(secondary.with(|input| verify_request(input, key.as_bytes(), &signature)));
    assert!(!request.with(|input| verify_request(input, key.as_bytes(), &signature)));
}

#[test]
fn authorization_headers_are_parsed_or_rejected() {
    let lite = parse_authorization("SharedKeyLite a:b:c=").unwrap();
    let (account, signature) = ("a".to_owned(), "b:c=".to_owned());
    assert_eq!(
        lite,
        Authorization::Key {
            scheme: Scheme::SharedKeyLite,
            account,
            signature
        }
    );
    assert_eq!(
        parse_authorization("bearer t").unwrap(),
        Authorization::Bearer("t".to_owned())
    );
    for bad in [
        "",
        "SharedKey",
        "SharedKey ",
        "SharedKey a",
        "SharedKey a:",
        "SharedKey :b",
        "Bearer ",
        "Basic a:b",
        "AWS4-HMAC-SHA256 x",
    ] {
        let error = parse_authorization(bad).unwrap_err();
        assert_eq!(
            (error.status(), error.code()),
            (400, ErrorCode::InvalidAuthenticationInfo)
        );
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(text in ".{0,60}", path in ".{0,20}", value in ".{0,20}") {
        let _ = parse_authorization(&text);
        let headers = [(text.as_str(), value.as_str()), ("x-ms-meta-a", &value)];
        let request = Request { path: &path, ..blob(&headers) };
        let _ = request.with(|input| verify_request(input, b"key", &value));
    }
}

#[test]
fn debug_output_contains_no_secret() {
    for header in ["SharedKey account:c2VjcmV0", "Bearer c2VjcmV0"] {
        let read = parse_authorization(header).unwrap();
        assert!(!format!("{read:?}").contains("c2VjcmV0"), "{read:?}");
    }
    assert!(parse_authorization("Bearer two words").is_err());
}
