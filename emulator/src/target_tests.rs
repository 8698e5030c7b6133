//! Tests of the resolution of addresses.

use proptest::prelude::*;

use super::*;

fn target(host: &str, path: &str, names_container: bool) -> Result<Target, StorageError> {
    let address = Address {
        host,
        raw_path: path,
        socket: None,
        on_data_lake_socket: false,
        names_container,
        has_data_lake_shape: false,
        host_style: true,
    };
    resolve(&address, |name| name == "devstoreaccount1")
}

#[test]
fn both_styles_resolve_to_the_same_resources() {
    let blob = Resource::Blob("c".into(), "d/b c".into());
    for (host, path) in [
        ("127.0.0.1:10000", "/devstoreaccount1/c/d/b%20c"),
        ("devstoreaccount1.blob.core.windows.net", "/c/d/b%20c"),
        (
            "devstoreaccount1-secondary.blob.core.windows.net",
            "/c/d/b%20c",
        ),
        ("DEVSTOREACCOUNT1.blob.localhost:10000", "/c/d/b%20c"),
    ] {
        let target = target(host, path, false).unwrap();
        assert_eq!(target.account, "devstoreaccount1");
        assert_eq!(target.resource, blob);
        assert_eq!(target.raw_path, path);
    }
}

#[test]
fn single_segment_is_a_container_only_if_the_query_says_so() {
    let host = "127.0.0.1:10000";
    for (path, names_container, expected) in [
        ("/devstoreaccount1", false, Resource::Service),
        ("/devstoreaccount1/", false, Resource::Service),
        ("/devstoreaccount1/c", true, Resource::Container("c".into())),
        (
            "/devstoreaccount1/c",
            false,
            Resource::Blob("$root".into(), "c".into()),
        ),
        (
            "/devstoreaccount1/c/",
            false,
            Resource::Container("c".into()),
        ),
        (
            "/devstoreaccount1/c//b",
            false,
            Resource::Blob("c".into(), "/b".into()),
        ),
        (
            "/devstoreaccount1/c/a%5Cb",
            false,
            Resource::Blob("c".into(), "a/b".into()),
        ),
    ] {
        assert_eq!(
            target(host, path, names_container).unwrap().resource,
            expected
        );
    }
}

#[test]
fn data_lake_interface_is_recognised_by_host_port_and_shape() {
    for (host, path, has_data_lake_shape, expected) in [
        (
            "devstoreaccount1.dfs.core.windows.net",
            "/fs/a",
            false,
            true,
        ),
        ("devstoreaccount1.dfs.localhost:10000", "/fs", false, true),
        (
            "devstoreaccount1.blob.localhost:10000",
            "/fs/a",
            true,
            false,
        ),
        ("127.0.0.1:10000", "/devstoreaccount1/fs", true, true),
        ("127.0.0.1:10000", "/devstoreaccount1/fs/a", false, false),
        ("127.0.0.1:10001", "/devstoreaccount1/q", true, false),
        ("127.0.0.1:10004", "/devstoreaccount1/fs", false, true),
    ] {
        let address = Address {
            host,
            raw_path: path,
            socket: None,
            on_data_lake_socket: false,
            names_container: false,
            has_data_lake_shape,
            host_style: true,
        };
        let found = resolve(&address, |name| name == "devstoreaccount1").unwrap();
        assert_eq!(found.data_lake, expected, "{host}{path}");
        let of_socket = Address {
            socket: Some(Service::Blob),
            on_data_lake_socket: true,
            ..address
        };
        let found = resolve(&of_socket, |name| name == "devstoreaccount1").unwrap();
        assert!(found.data_lake, "{host}{path}");
        if expected && path.ends_with("/fs") {
            assert_eq!(found.resource, Resource::Container("fs".into()));
        }
    }
}

#[test]
fn queue_paths_name_messages_only() {
    let host = "127.0.0.1:10001";
    for (path, expected) in [
        ("/devstoreaccount1/q", Some(Resource::Queue("q".into()))),
        (
            "/devstoreaccount1/q/messages",
            Some(Resource::Messages("q".into())),
        ),
        (
            "/devstoreaccount1/q/messages/a%2Bb",
            Some(Resource::Message("q".into(), "a+b".into())),
        ),
        ("/devstoreaccount1/q/other", None),
    ] {
        assert_eq!(target(host, path, false).ok().map(|t| t.resource), expected);
    }
}

#[test]
fn table_secondary_path_may_repeat_the_account() {
    let table = |name: &str| address::Resource::Entities(name.to_owned());
    for (path, expected) in [
        ("-secondary/devstoreaccount1/", address::Resource::Service),
        ("-secondary/", address::Resource::Service),
        (
            "-secondary/devstoreaccount1/Tables",
            address::Resource::Tables,
        ),
        ("-secondary/devstoreaccount1/tab()", table("tab")),
        // A table can have the account's name.
        ("-secondary/devstoreaccount1", table("devstoreaccount1")),
        ("-secondary/devstoreaccount1()", table("devstoreaccount1")),
        ("/devstoreaccount1/", table("devstoreaccount1")),
    ] {
        let path = format!("/devstoreaccount1{path}");
        let found = target("127.0.0.1:10002", &path, false).unwrap();
        assert_eq!(found.resource, Resource::Table(Ok(expected)), "{path}");
    }
    let path = "/devstoreaccount1-secondary/devstoreaccount1/tab";
    let signed = target("127.0.0.1:10002", path, false).unwrap();
    assert_eq!(signed.raw_path, "/devstoreaccount1/tab");
    let twice = target(
        "127.0.0.1:10002",
        "/devstoreaccount1/devstoreaccount1/tab",
        false,
    );
    assert!(matches!(twice.unwrap().resource, Resource::Table(Err(_))));
}

#[test]
fn unknown_host_is_path_style_and_bad_escape_is_refused() {
    let found = target("azurite:10000", "/other/c/b", false).unwrap();
    assert_eq!(found.account, "other");
    for path in ["/devstoreaccount1/c/%zz", "/devstoreaccount1/c/%FF", "/"] {
        assert!(target("127.0.0.1:10000", path, false).is_err(), "{path}");
    }
}

proptest! {
    /// Escaped names are decoded in both styles.
    #[test]
    fn escaped_names_are_resolved(
        container in "[a-z0-9]([a-z0-9]|-[a-z0-9]){1,20}",
        blob in "[^/\\\\\\p{C}][^\\\\\\p{C}]{0,40}",
    ) {
        let path = format!("/{container}/{}", uri::encode_path(&blob));
        let expected = Resource::Blob(container, blob);
        let path_style = format!("/devstoreaccount1{path}");
        let read = target("127.0.0.1:10000", &path_style, false).unwrap();
        prop_assert_eq!(&read.resource, &expected);
        let read = target("devstoreaccount1.blob.localhost", &path, false).unwrap();
        prop_assert_eq!(&read.resource, &expected);
    }

    /// Any path on any host is resolved or refused with 400.
    #[test]
    fn any_path_is_resolved_or_refused(
        host in "(devstoreaccount1|\\.|:|blob|queue|table|[0-9]|\\PC){0,8}",
        port in 10_000u16..10_004,
        path in "(/|%2f|%|\\$root|\\$batch|messages|\\(|'|devstoreaccount1|-second|\\PC){0,9}",
        names_container: bool,
    ) {
        for host in [host, format!("127.0.0.1:{port}")] {
            let read = target(&host, &path, names_container);
            prop_assert!(read.map_or_else(|error| error.status() == 400, |_| true));
        }
    }
}
