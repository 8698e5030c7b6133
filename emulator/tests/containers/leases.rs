//! Leases by their headers; the tables of outcomes stand beside the rule.

use crate::client::Client;

const A: &str = "ca761232-ed42-11ce-bacd-00aa0057b223";
const B: &str = "{3C7E72EB-B430-4526-BC53-D8ECEF03798F}";

fn action<'a>(name: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&[("x-ms-lease-action", name)], more].concat()
}

/// The life of a lease, the same on a container and on a blob.
async fn live(client: &Client, lease: &str) {
    let acquire = [("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", A)];
    let acquired = client
        .ask("PUT", lease, &action("acquire", &acquire), "")
        .await;
    assert_eq!(
        (acquired.outcome(), acquired.header("x-ms-lease-id")),
        ("201".to_owned(), A)
    );
    let duration = action("acquire", &[("x-ms-lease-duration", "60")]);
    assert_eq!(
        client.try_("PUT", lease, &duration).await,
        "409 LeaseAlreadyPresent"
    );
    let change = [("x-ms-lease-id", A), ("x-ms-proposed-lease-id", B)];
    let changed = client
        .ask("PUT", lease, &action("change", &change), "")
        .await;
    let b = "3c7e72eb-b430-4526-bc53-d8ecef03798f";
    assert_eq!(
        (changed.outcome(), changed.header("x-ms-lease-id")),
        ("200".to_owned(), b)
    );
    client.advance(15);
    let renew = action("renew", &[("x-ms-lease-id", B)]);
    assert_eq!(client.try_("PUT", lease, &renew).await, "200");
    client.advance(10);
    let broken = client.ask("PUT", lease, &action("break", &[]), "").await;
    assert_eq!(
        (broken.outcome(), broken.header("x-ms-lease-time")),
        ("202".to_owned(), "5")
    );
    assert_eq!(broken.header("x-ms-lease-id"), "");
    assert_eq!(broken.header("etag"), acquired.header("etag"));
    assert_eq!(
        client.try_("PUT", lease, &renew).await,
        "409 LeaseIsBrokenAndCannotBeRenewed"
    );
    client.advance(5);
    let release = action("release", &[("x-ms-lease-id", b)]);
    let released = client.ask("PUT", lease, &release, "").await;
    assert_eq!(
        (released.outcome(), released.text.as_str()),
        ("200".to_owned(), "")
    );
    assert_eq!(
        client.try_("PUT", lease, &release).await,
        "409 LeaseIdMismatchWithLeaseOperation"
    );
    assert_eq!(
        client.try_("PUT", lease, &action("break", &[])).await,
        "409 LeaseNotPresentWithLeaseOperation"
    );
}

#[tokio::test]
async fn containers_and_blobs_lease_alike() {
    let client = Client::new();
    client.create("events").await;
    client.put("events/blob").await;
    live(&client, "events?restype=container&comp=lease").await;
    live(&client, "events/blob?comp=lease").await;
}

#[tokio::test]
async fn bad_headers_are_named() {
    let client = Client::new();
    client.create("events").await;
    let lease = "events?restype=container&comp=lease";
    for (headers, outcome) in [
        (vec![], "400 MissingRequiredHeader"),
        (action("take", &[]), "400 InvalidHeaderValue"),
        (action("acquire", &[]), "400 MissingRequiredHeader"),
        (
            action("acquire", &[("x-ms-lease-duration", "14")]),
            "400 InvalidHeaderValue",
        ),
        (action("renew", &[]), "400 MissingRequiredHeader"),
        (
            action("release", &[("x-ms-lease-id", "badleaseid")]),
            "400 InvalidHeaderValue",
        ),
        (
            action("change", &[("x-ms-lease-id", A)]),
            "400 MissingRequiredHeader",
        ),
        (
            action("break", &[("x-ms-lease-break-period", "61")]),
            "400 InvalidHeaderValue",
        ),
    ] {
        assert_eq!(
            client.try_("PUT", lease, &headers).await,
            outcome,
            "{headers:?}"
        );
    }
    let missing = "none?restype=container&comp=lease";
    let acquire = action("acquire", &[("x-ms-lease-duration", "-1")]);
    assert_eq!(
        client.try_("PUT", missing, &acquire).await,
        "404 ContainerNotFound"
    );
    assert_eq!(
        client.try_("PUT", "events/none?comp=lease", &acquire).await,
        "404 BlobNotFound"
    );
}

#[tokio::test]
async fn a_lease_guards_the_deletion_of_its_container() {
    let client = Client::new();
    client.create("events").await;
    let lease = "events?restype=container&comp=lease";
    let headers = [("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", A)];
    assert_eq!(
        client
            .try_("PUT", lease, &action("acquire", &headers))
            .await,
        "201"
    );
    let container = "events?restype=container";
    let (own, other) = ([("x-ms-lease-id", A)], [("x-ms-lease-id", B)]);
    assert_eq!(
        client.try_("DELETE", container, &[]).await,
        "412 LeaseIdMissing"
    );
    let mismatch = "412 LeaseIdMismatchWithContainerOperation";
    assert_eq!(client.try_("DELETE", container, &other).await, mismatch);
    assert_eq!(client.try_("GET", container, &other).await, mismatch);
    assert_eq!(client.try_("GET", container, &own).await, "200");
    assert_eq!(
        client
            .try_("PUT", "events?restype=container&comp=metadata", &[])
            .await,
        "200"
    );
    let shown = client.ask("GET", container, &[], "").await;
    assert_eq!(shown.header("x-ms-lease-duration"), "fixed");
    client.advance(15);
    assert_eq!(
        client.try_("DELETE", container, &own).await,
        "412 LeaseLost"
    );
    assert_eq!(client.try_("DELETE", container, &[]).await, "202");
}

#[tokio::test]
async fn an_expired_lease_cannot_be_renewed_over_a_write() {
    let client = Client::new();
    client.create("events").await;
    client.put("events/blob").await;
    let lease = "events/blob?comp=lease";
    let headers = [("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", A)];
    assert_eq!(
        client
            .try_("PUT", lease, &action("acquire", &headers))
            .await,
        "201"
    );
    client.advance(15);
    client.put("events/blob").await;
    let renew = action("renew", &[("x-ms-lease-id", A)]);
    assert_eq!(
        client.try_("PUT", lease, &renew).await,
        "409 LeaseIdMismatchWithLeaseOperation"
    );
}
