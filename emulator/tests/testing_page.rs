//! The example of docs/testing-your-code.md, as it stands there. A second test holds the two equal.

// page: begin
use std::time::Duration;

use azure_core::Bytes;
use azure_core::http::{ClientOptions, Url};
use azure_storage_blob::{BlobServiceClient, BlobServiceClientOptions};
use azure_storage_queue::models::QueueMessage;
use azure_storage_queue::{QueueServiceClient, QueueServiceClientOptions};
use smalt::{Clock, Emulator, Timestamp};

#[tokio::test(start_paused = true)]
async fn message_comes_back_when_nobody_deletes_it() -> Result<(), Box<dyn std::error::Error>> {
    let clock = Clock::tokio(Timestamp::from_unix_s(1_800_000_000));
    let emulator = Emulator::builder().clock(clock).seed(1).open()?;
    let client_options = ClientOptions {
        transport: Some(emulator.sdk_transport()),
        ..Default::default()
    };

    // Microsoft's blob client. No socket, no credential: requests are signed as the owner.
    let options = BlobServiceClientOptions {
        client_options: client_options.clone(),
        ..Default::default()
    };
    let endpoint = Url::parse("http://127.0.0.1:10000/devstoreaccount1/")?;
    let blobs = BlobServiceClient::new(endpoint, None, Some(options))?;
    let events = blobs.blob_container_client("events");
    events.create(None).await?;
    let blob = events.blob_client("2026/11/21.json");
    blob.upload(Bytes::from_static(b"{\"n\": 1}").into(), None)
        .await?;
    let body = blob.download(None).await?.body.collect().await?;
    assert_eq!(body, "{\"n\": 1}");

    // Microsoft's queue client.
    let options = QueueServiceClientOptions {
        client_options,
        ..Default::default()
    };
    let endpoint = Url::parse("http://127.0.0.1:10001/devstoreaccount1/")?;
    let queues = QueueServiceClient::new(endpoint, None, Some(options))?;
    let orders = queues.queue_client("orders")?;
    orders.create(None).await?;
    let message = QueueMessage {
        message_text: Some("first".to_owned()),
    };
    orders.send_message(message.try_into()?, None).await?;
    let taken = orders.receive_messages(None).await?.into_model()?;
    assert_eq!(taken.items.unwrap_or_default().len(), 1);

    // It is hidden for 30 seconds, which pass at once: time is tokio's, and tokio's is paused.
    let hidden = orders.receive_messages(None).await?.into_model()?;
    assert!(hidden.items.unwrap_or_default().is_empty());
    tokio::time::sleep(Duration::from_secs(31)).await;
    let again = orders.receive_messages(None).await?.into_model()?;
    assert_eq!(again.items.unwrap_or_default()[0].dequeue_count, Some(2));

    // A message lives for seven days.
    tokio::time::sleep(Duration::from_secs(7 * 86_400)).await;
    let expired = orders.receive_messages(None).await?.into_model()?;
    assert!(expired.items.unwrap_or_default().is_empty());
    Ok(())
}
// page: end

#[test]
fn the_page_shows_this_example() {
    let own = include_str!("testing_page.rs");
    let page = include_str!("../../docs/testing-your-code.md");
    let (_, rest) = own.split_once("// page: begin\n").unwrap();
    let (example, _) = rest.split_once("// page: end\n").unwrap();
    let (_, rest) = page.split_once("```rust\n").unwrap();
    let (shown, _) = rest.split_once("```\n").unwrap();
    assert_eq!(shown, example);
}
