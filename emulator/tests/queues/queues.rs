//! Queues: names, metadata, creation, deletion, listing.

use smalt::Config;

use super::client::Client;

/// Names have 3 to 63 of lower case letters, digits and single dashes between them.
#[tokio::test]
async fn names_are_checked() {
    let client = Client::new().await;
    let long = "a".repeat(63);
    for name in ["abc", "123", "a-b-c", &long] {
        assert_eq!(
            client.send("PUT", &format!("/{name}"), "").await.outcome(),
            "201"
        );
    }
    let longer = "a".repeat(64);
    for (name, outcome) in [
        ("ab", "400 OutOfRangeInput"),
        (&longer, "400 OutOfRangeInput"),
        ("Abc", "400 InvalidResourceName"),
        ("a--b", "400 InvalidResourceName"),
        ("-abc", "400 InvalidResourceName"),
        ("abc-", "400 InvalidResourceName"),
        ("a_b", "400 InvalidResourceName"),
        ("a.b", "400 InvalidResourceName"),
        ("%C3%BCber", "400 InvalidResourceName"),
    ] {
        assert_eq!(
            client.send("PUT", &format!("/{name}"), "").await.outcome(),
            outcome,
            "{name}"
        );
    }
}

/// New is 201; the same metadata again is 204, other metadata 409: names compare without case.
#[tokio::test]
async fn a_creation_compares_metadata() {
    let client = Client::new().await;
    let a = [("x-ms-meta-a", "1")];
    let upper = [("x-ms-meta-A", "1")];
    let other = [("x-ms-meta-a", "2")];
    let more = [("x-ms-meta-a", "1"), ("x-ms-meta-b", "1")];
    for (headers, outcome) in [
        (&a[..], "201"),
        (&a, "204"),
        (&upper, "204"),
        (&other, "409 QueueAlreadyExists"),
        (&more, "409 QueueAlreadyExists"),
        (&[], "409 QueueAlreadyExists"),
    ] {
        let answer = client.send_with("PUT", "/new", headers, "").await;
        assert_eq!(answer.outcome(), outcome, "{headers:?}");
    }
    let set = client
        .send_with("PUT", "/new?comp=metadata", &other, "")
        .await;
    assert_eq!(set.outcome(), "204");
    assert_eq!(
        client.send_with("PUT", "/new", &other, "").await.outcome(),
        "204"
    );
    assert_eq!(client.send_with("PUT", "/new", &a, "").await.status, 409);
}

/// Set replaces all, without headers it clears; names are identifiers; Get shows it with the count.
#[tokio::test]
async fn metadata_is_replaced_as_a_whole() {
    let client = Client::new().await;
    let path = "/que?comp=metadata";
    let set = [("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")];
    assert_eq!(
        client.send_with("PUT", path, &set, "").await.outcome(),
        "204"
    );
    let set = [("x-ms-meta-c", "3")];
    assert_eq!(
        client.send_with("PUT", path, &set, "").await.outcome(),
        "204"
    );
    for method in ["GET", "HEAD"] {
        let got = client.send(method, path, "").await;
        assert_eq!((got.status, got.text.as_str()), (200, ""));
        assert_eq!(got.header("x-ms-meta-c"), "3");
        assert_eq!(got.header("x-ms-meta-a"), "");
        assert_eq!(got.header("x-ms-approximate-messages-count"), "0");
        assert_eq!(got.header("cache-control"), "no-cache");
    }
    assert_eq!(client.send("PUT", path, "").await.outcome(), "204");
    assert_eq!(client.send("GET", path, "").await.header("x-ms-meta-c"), "");
    for (name, outcome) in [
        ("x-ms-meta-1a", "400 InvalidMetadata"),
        ("x-ms-meta-a-b", "400 InvalidMetadata"),
        ("x-ms-meta-", "400 EmptyMetadataKey"),
    ] {
        let answer = client.send_with("PUT", path, &[(name, "1")], "").await;
        assert_eq!(answer.outcome(), outcome, "{name}");
    }
    let large = "x".repeat(8 * 1024);
    let answer = client
        .send_with("PUT", path, &[("x-ms-meta-a", &large)], "")
        .await;
    assert_eq!(answer.outcome(), "400 MetadataTooLarge");
    let missing = client.send("GET", "/none?comp=metadata", "").await;
    assert_eq!(missing.outcome(), "404 QueueNotFound");
}

/// A deletion takes everything along; what is made anew is empty.
#[tokio::test]
async fn a_queue_is_deleted_with_its_messages() {
    let client = Client::new().await;
    client.put("a", "").await;
    assert_eq!(client.send("DELETE", "/que", "").await.outcome(), "204");
    for (method, path) in [
        ("DELETE", "/que"),
        ("GET", "/que?comp=metadata"),
        ("GET", "/que?comp=acl"),
        ("PUT", "/que?comp=metadata"),
    ] {
        let answer = client.send(method, path, "").await;
        assert_eq!(answer.outcome(), "404 QueueNotFound", "{method} {path}");
    }
    assert_eq!(client.send("PUT", "/que", "").await.outcome(), "201");
    assert_eq!((client.count().await, client.visible().await.len()), (0, 0));
}

/// Where the setting is on, a name is taken while its queue is being deleted.
#[tokio::test]
async fn a_name_is_taken_while_its_queue_is_being_deleted() {
    let client = Client::with(Config {
        being_deleted_s: 30,
        ..Config::default()
    })
    .await;
    client.send("DELETE", "/que", "").await;
    client.advance_s(29);
    assert_eq!(
        client.send("PUT", "/que", "").await.outcome(),
        "409 QueueBeingDeleted"
    );
    client.advance_s(1);
    assert_eq!(client.send("PUT", "/que", "").await.outcome(), "201");
}

/// "Clear Messages" empties a queue at once, and nothing of it comes back.
#[tokio::test]
async fn a_queue_is_cleared() {
    let client = Client::new().await;
    client.put("hidden", "?visibilitytimeout=10").await;
    client.put("taken", "").await;
    client.take("").await;
    client.put("visible", "").await;
    assert_eq!(
        client.send("DELETE", "/que/messages", "").await.outcome(),
        "204"
    );
    assert_eq!(client.count().await, 0);
    client.put("next", "").await;
    client.advance_s(60);
    assert_eq!(client.visible().await, ["next"]);
}

/// Pages of queues: prefix, marker, size, metadata where it is asked for.
#[tokio::test]
async fn queues_are_listed_in_pages() {
    let client = Client::new().await;
    for name in ["aa-1", "aa-2", "aa-3", "bb-1"] {
        let headers = [("x-ms-meta-of", name)];
        client
            .send_with("PUT", &format!("/{name}"), &headers, "")
            .await;
    }
    let (mut names, mut marker) = (Vec::new(), String::new());
    loop {
        let path = format!("/?comp=list&prefix=aa&maxresults=2&marker={marker}");
        let page = client.send("GET", &path, "").await;
        assert_eq!(page.outcome(), "200");
        assert!(!page.text.contains("<Metadata>"));
        names.extend(page.all("Name").into_iter().map(str::to_owned));
        marker = page.one("NextMarker");
        if marker.is_empty() {
            break;
        }
    }
    assert_eq!(names, ["aa-1", "aa-2", "aa-3"]);
    let all = client.send("GET", "/?comp=list&include=metadata", "").await;
    assert_eq!(all.all("of"), ["aa-1", "aa-2", "aa-3", "bb-1"]);
    assert_eq!(all.header("cache-control"), "no-cache");
    for (query, outcome) in [
        ("maxresults=0", "400 OutOfRangeQueryParameterValue"),
        ("maxresults=x", "400 InvalidQueryParameterValue"),
        ("include=snapshots", "400 InvalidQueryParameterValue"),
    ] {
        let answer = client
            .send("GET", &format!("/?comp=list&{query}"), "")
            .await;
        assert_eq!(answer.outcome(), outcome, "{query}");
    }
}
