//! Maintenance of a deleted container whose blobs were copied by pending copies.

use smalt::faults::{Fault, Hold, Rule};

use crate::support::Client;

#[tokio::test]
async fn container_with_pending_copies_is_removed_completely() {
    let client = Client::new();
    let hold = Hold {
        duration_s: Some(10),
        ..Hold::default()
    };
    client.emulator().faults().add(Rule {
        operation: "Blob_StartCopyFromURL".to_owned(),
        resource: String::new(),
        nth: 1,
        times: 2,
        fault: Fault::PendingCopy(hold),
    });
    let source = client.url("/box/source");
    let copy = [("x-ms-copy-source", &*source)];
    client.create("box").await;
    client.put("/box/source", "text").await;
    for path in ["/box/b", "/box/c"] {
        assert_eq!(client.try_("PUT", path, &copy).await, "202");
    }
    client.advance_s(10);
    assert_eq!(
        client.try_("DELETE", "/box?restype=container", &[]).await,
        "202"
    );
    while client.emulator().maintain(100).unwrap().more {}
    client.create("box").await;
    assert_eq!(client.head("/box/b").await.status, 404);
}
