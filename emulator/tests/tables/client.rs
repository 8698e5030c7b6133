//! What the tests of the Table service ask of a client.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use serde_json::json;
use smalt::{Config, Service};

use crate::support::{Answer, Client};

/// Creates an emulator with the table `tab`.
pub(crate) async fn with_table(config: Config) -> Client {
    let client = Client::with(config).at(Service::Table);
    assert_eq!(client.create_table("tab").await.outcome(), "201");
    client
}

impl Client {
    pub(crate) async fn create_table(&self, name: &str) -> Answer {
        let body = json!({ "TableName": name }).to_string();
        self.send("POST", "/Tables", &[], body).await
    }

    /// Inserts an entity of `tab` with these keys and the string `v`.
    pub(crate) async fn insert_entity(&self, partition: &str, row: &str, value: &str) -> Answer {
        let entity = json!({ "PartitionKey": partition, "RowKey": row, "v": value });
        self.send("POST", "/tab", &[], entity.to_string()).await
    }
}

impl Answer {
    /// Returns the strings of a property in a page.
    pub(crate) fn column(&self, name: &str) -> Vec<String> {
        let page = self.json();
        let rows = page["value"].as_array().unwrap().iter();
        rows.map(|row| row[name].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Returns the path of an entity of `tab`.
pub(crate) fn address(partition: &str, row: &str) -> String {
    let path = smalt_protocol::table::key::entity_path("tab", partition, row);
    format!("/{path}")
}
