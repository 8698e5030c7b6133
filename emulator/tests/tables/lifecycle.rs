//! Tables: create, list, delete.

use smalt::Config;

use super::client::with_table;
use crate::support::config;

/// "Delete Table": with the setting, the name stays taken while the table is being deleted.
#[tokio::test]
async fn name_is_taken_while_its_table_is_being_deleted() {
    let client = with_table(Config {
        being_deleted_s: 40,
        ..config()
    })
    .await;
    client.send("DELETE", "/Tables('tab')", &[], "").await;
    assert_eq!(
        client.create_table("tab").await.outcome(),
        "409 TableBeingDeleted"
    );
    assert!(client.get("/Tables").await.column("TableName").is_empty());
    client.advance_s(40);
    assert_eq!(client.create_table("tab").await.outcome(), "201");
}

/// `maintain` removes the records of a deleted table, including all parts of large entities.
#[tokio::test]
async fn maintenance_removes_the_records_of_a_deleted_table() {
    let client = with_table(config()).await;
    for row in 0..5 {
        let large = "x".repeat(30_000);
        let made = client.insert_entity("p", &row.to_string(), &large).await;
        assert_eq!(made.outcome(), "201");
    }
    client.send("DELETE", "/Tables('tab')", &[], "").await;
    let removed = client.emulator().maintain(1_000).unwrap();
    assert!(!removed.more);
    client.create_table("tab").await;
    assert_eq!(client.get("/tab()").await.column("RowKey").len(), 0);
}
