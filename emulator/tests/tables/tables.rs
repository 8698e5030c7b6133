//! Tables: created, listed, deleted.

use smalt::Config;
use smalt_protocol::ApiVersion;

use super::client::{Client, ENDPOINT, with_query};

/// "Create Table": 201 with the table, or 204 where nothing is to be returned.
#[tokio::test]
async fn a_table_is_created_and_shown_as_asked_for() {
    let client = Client::new().await;
    let plain = client.create("People").await;
    assert_eq!(plain.outcome(), "201");
    assert_eq!(plain.json()["TableName"], "People");
    assert_eq!(
        plain.header("location"),
        format!("{ENDPOINT}Tables('People')")
    );
    let minimal = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
    assert_eq!(plain.header("content-type"), minimal);
    assert_eq!(plain.header("cache-control"), "no-cache");
    let quiet = client
        .send_with(
            "POST",
            "/Tables",
            &[("prefer", "return-no-content")],
            "{\"TableName\":\"Quiet\"}",
        )
        .await;
    assert_eq!((quiet.status, quiet.text.as_str()), (204, ""));
    assert_eq!(quiet.header("preference-applied"), "return-no-content");
    assert_eq!(
        quiet.header("dataserviceid"),
        format!("{ENDPOINT}Tables('Quiet')")
    );
}

/// "Table names are case-insensitive and case-preserving."
#[tokio::test]
async fn names_keep_their_case_and_are_compared_without() {
    let client = Client::new().await;
    client.create("MyTable").await;
    let again = client.create("mytable").await;
    assert_eq!(again.outcome(), "409 TableAlreadyExists");
    let one = client.send("GET", "/Tables('MYTABLE')", "").await;
    assert_eq!(one.json()["TableName"], "MyTable");
    assert_eq!(
        client
            .send("DELETE", "/Tables('mYtable')", "")
            .await
            .outcome(),
        "204"
    );
    assert_eq!(
        client.send("GET", "/Tables('MyTable')", "").await.outcome(),
        "404 ResourceNotFound"
    );
}

/// "Query Tables": in pages, in the order of their names, those that a filter accepts.
#[tokio::test]
async fn tables_are_listed_in_pages() {
    let client = Client::new().await;
    for name in ["Cab", "abc", "bad", "bcd"] {
        client.create(name).await;
    }
    let mut names = Vec::new();
    let mut path = "/Tables?$top=2".to_owned();
    loop {
        let page = client.send("GET", &path, "").await;
        assert_eq!(page.outcome(), "200");
        names.push(page.texts("TableName"));
        match page.header("x-ms-continuation-nexttablename") {
            "" => break,
            next => path = with_query("/Tables", &[("$top", "2"), ("NextTableName", next)]),
        }
    }
    assert_eq!(names, [vec!["abc", "bad"], vec!["bcd", "Cab"], vec!["tab"]]);
    let filter = "TableName ge 'b' and TableName lt 'c'";
    let some = client
        .send("GET", &with_query("/Tables", &[("$filter", filter)]), "")
        .await;
    assert_eq!(some.texts("TableName"), ["bad", "bcd"]);
}

/// A continuation begins where the next table is then, whatever has gone or come between.
#[tokio::test]
async fn a_continuation_stays_valid_when_its_table_goes() {
    let client = Client::new().await;
    for name in ["aaa", "bbb", "ccc"] {
        client.create(name).await;
    }
    let page = client.send("GET", "/Tables?$top=1", "").await;
    let next = page.header("x-ms-continuation-nexttablename").to_owned();
    client.send("DELETE", "/Tables('bbb')", "").await;
    client.create("bbc").await;
    let rest = with_query("/Tables", &[("NextTableName", &next)]);
    let rest = client.send("GET", &rest, "").await;
    assert_eq!(rest.texts("TableName"), ["bbc", "ccc", "tab"]);
}

/// Entities go with their table, and a new one of its name is empty.
#[tokio::test]
async fn a_deleted_table_leaves_nothing() {
    let client = Client::new().await;
    client.insert("p", "r", "v").await;
    assert_eq!(
        client.send("DELETE", "/Tables('tab')", "").await.outcome(),
        "204"
    );
    assert_eq!(client.get("p", "r").await.outcome(), "404 TableNotFound");
    assert_eq!(
        client.insert("p", "r", "v").await.outcome(),
        "404 TableNotFound"
    );
    let again = client.send("DELETE", "/Tables('tab')", "").await;
    assert_eq!(again.outcome(), "404 ResourceNotFound");
    assert_eq!(client.create("tab").await.outcome(), "201");
    assert_eq!(client.get("p", "r").await.outcome(), "404 ResourceNotFound");
}

/// "Delete Table": its name is taken while it is being deleted, if the emulator is told to.
#[tokio::test]
async fn a_name_is_taken_while_its_table_is_being_deleted() {
    let client = Client::with(Config {
        being_deleted_s: 40,
        ..Config::default()
    })
    .await;
    client.send("DELETE", "/Tables('tab')", "").await;
    assert_eq!(
        client.create("tab").await.outcome(),
        "409 TableBeingDeleted"
    );
    assert!(
        client
            .send("GET", "/Tables", "")
            .await
            .texts("TableName")
            .is_empty()
    );
    client.advance_s(40);
    assert_eq!(client.create("tab").await.outcome(), "201");
}

/// What `maintain` finds of a deleted table goes, all parts of large entities included.
#[tokio::test]
async fn maintenance_removes_what_a_table_left() {
    let client = Client::new().await;
    for row in 0..5 {
        let large = "x".repeat(30_000);
        assert_eq!(
            client.insert("p", &row.to_string(), &large).await.outcome(),
            "201"
        );
    }
    client.send("DELETE", "/Tables('tab')", "").await;
    let removed = client.emulator.maintain(1_000).unwrap();
    assert!(!removed.more);
    client.create("tab").await;
    assert_eq!(
        client.send("GET", "/tab()", "").await.texts("RowKey").len(),
        0
    );
}

/// The oldest versions answer in Atom, those since 2015-12-11 in JSON only.
#[tokio::test]
async fn versions_decide_about_atom() {
    let client = Client::new().await;
    let old = client.under(ApiVersion::V2014_02_14);
    let atom = old.send("GET", "/Tables('tab')", "").await;
    assert_eq!(
        atom.header("content-type"),
        "application/atom+xml;type=entry;charset=utf-8"
    );
    assert!(
        atom.text.contains("<d:TableName>tab</d:TableName>"),
        "{}",
        atom.text
    );
    let missing = old.send("GET", "/Tables('none')", "").await;
    assert_eq!(
        missing.header("content-type"),
        "application/xml;charset=utf-8"
    );
    assert_eq!(missing.outcome(), "404 ResourceNotFound");
    let accept = [("accept", "application/atom+xml")];
    let new = client.send_with("GET", "/Tables('tab')", &accept, "").await;
    assert_eq!(new.outcome(), "415 AtomFormatNotSupported");
}
