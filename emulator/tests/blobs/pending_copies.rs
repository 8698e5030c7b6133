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
    let container = "/box?restype=container";
    let source = client.url("/box/source");
    let (block, copy) = (
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-copy-source", &*source),
    );
    for (path, headers, status) in [
        (container, &[][..], 201),
        ("/box/source", &[block], 201),
        ("/box/b", &[copy], 202),
        ("/box/c", &[copy], 202),
    ] {
        assert_eq!(
            client.send("PUT", path, headers, "text").await.status,
            status
        );
    }
    client.advance_s(10);
    assert_eq!(client.send("DELETE", container, &[], "").await.status, 202);
    while client.emulator().maintain(100).unwrap().more {}
    assert_eq!(client.send("PUT", container, &[], "").await.status, 201);
    assert_eq!(client.send("HEAD", "/box/b", &[], "").await.status, 404);
}
