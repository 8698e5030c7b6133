//! Authorisation: Shared Key Lite, account SAS and table SAS with their ranges.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use bytes::Bytes;
use smalt_protocol::connection_string::EMULATOR_ACCOUNT_KEY;
use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::{AccountSas, ServiceSas};
use smalt_protocol::signing::shared_key::{Scheme, SigningInput, authorization};
use smalt_protocol::{ApiVersion, Service};

use super::client::{ACCOUNT, Answer, Client, START, address, entity, with_query};

fn key() -> AccountKey {
    AccountKey::parse(EMULATOR_ACCOUNT_KEY).unwrap()
}

/// Returns a SAS for the table `tab` with these permissions and fields.
fn of_table(permissions: &str, more: &[(&str, &str)]) -> String {
    let sas = ServiceSas {
        version: ApiVersion::V2019_02_02,
        target: SasTarget {
            service: Service::Table,
            account: ACCOUNT,
            name: "tab",
            blob: None,
            snapshot: "",
        },
        permissions,
        start: None,
        expiry: Some(START.plus_s(3_600)),
        policy_id: "",
        ip: "",
        protocol: "",
        more,
    };
    sas.sign(key().as_bytes())
}

fn of_account(resource_types: &str, permissions: &str) -> String {
    let sas = AccountSas {
        version: ApiVersion::V2019_02_02,
        account: ACCOUNT,
        services: "t",
        resource_types,
        permissions,
        start: None,
        expiry: START.plus_s(3_600),
        ip: "",
        protocol: "",
        encryption_scope: "",
    };
    sas.sign(key().as_bytes())
}

async fn send(
    client: &Client,
    query: &str,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let joint = if path.contains('?') { '&' } else { '?' };
    let target = format!("/{ACCOUNT}{path}{joint}{query}");
    let mut all = vec![("content-type", "application/json")];
    all.extend_from_slice(headers);
    let body = Bytes::from(body.to_owned());
    client.call(method, &target, &all, body).await
}

/// "Authorize with Shared Key": the Lite scheme for tables signs date and resource.
#[tokio::test]
async fn shared_key_lite_signs_date_and_resource() {
    let client = Client::new().await;
    let target = format!("/{ACCOUNT}/Tables");
    let date = client.emulator.now().rfc1123();
    for (account, expected) in [(ACCOUNT, "200"), ("other", "403 AuthenticationFailed")] {
        let headers = [("x-ms-date", date.as_str()), ("x-ms-version", "2019-02-02")];
        let input = SigningInput {
            service: Service::Table,
            scheme: Scheme::SharedKeyLite,
            version: ApiVersion::V2019_02_02,
            method: "GET",
            account,
            path: &target,
            query: &Vec::new(),
            headers: &headers,
        };
        let signed = authorization(&input, key().as_bytes());
        let all = [headers[0], headers[1], ("authorization", signed.as_str())];
        let answer = client.call("GET", &target, &all, Bytes::new()).await;
        assert_eq!(answer.outcome(), expected, "{account}");
    }
}

/// Anonymous requests get 404 before 2019-12-12, and a challenge since.
#[tokio::test]
async fn anonymous_requests_are_refused() {
    let client = Client::new().await;
    let target = format!("/{ACCOUNT}/Tables");
    for (version, expected) in [
        ("2019-02-02", "404 ResourceNotFound"),
        ("2020-12-06", "401 NoAuthenticationInformation"),
    ] {
        let headers = [("x-ms-version", version)];
        let answer = client.call("GET", &target, &headers, Bytes::new()).await;
        assert_eq!(answer.outcome(), expected);
    }
}

/// "Create a service SAS": r queries, a inserts, u updates, a and u together upsert, d deletes.
#[tokio::test]
async fn each_table_sas_letter_allows_its_operations() {
    let client = Client::new().await;
    client.insert("p", "r", "v").await;
    let path = address("p", "r");
    let any = [("if-match", "*")];
    let denied = "403 AuthorizationPermissionMismatch";
    let new = entity("p", "new", "v");
    for (method, path, headers, body, needs, done) in [
        ("GET", path.as_str(), &[][..], "", "r", "200"),
        ("GET", "/tab()", &[], "", "r", "200"),
        ("MERGE", &path, &any, "{\"w\":1}", "u", "204"),
        ("PUT", &path, &any, "{\"w\":1}", "u", "204"),
        ("PUT", &path, &[], "{\"w\":1}", "au", "204"),
        ("MERGE", &path, &[], "{\"w\":1}", "au", "204"),
        ("POST", "/tab", &[], new.as_str(), "a", "201"),
        ("DELETE", &path, &any, "", "d", "204"),
    ] {
        for letter in ["r", "a", "u", "d"] {
            if needs != letter {
                let sas = of_table(letter, &[]);
                let refused = send(&client, &sas, (method, path), headers, body).await;
                assert_eq!(refused.outcome(), denied, "{method} {path} {letter}");
            }
        }
        let sas = of_table(needs, &[]);
        let answer = send(&client, &sas, (method, path), headers, body).await;
        assert_eq!(answer.outcome(), done, "{method} {path} {needs}");
    }
    let all = of_table("raud", &[]);
    for (method, path) in [
        ("GET", "/Tables"),
        ("GET", "/tab?comp=acl"),
        ("DELETE", "/Tables('tab')"),
    ] {
        let refused = send(&client, &all, (method, path), &[], "").await;
        assert_eq!(
            refused.outcome(),
            "403 AuthorizationFailure",
            "{method} {path}"
        );
    }
}

/// A signature gives access to the table that it names, and to no other.
#[tokio::test]
async fn table_sas_is_limited_to_its_table() {
    let client = Client::new().await;
    client.create("other").await;
    let sas = of_table("raud", &[]);
    let refused = send(&client, &sas, ("GET", "/other()"), &[], "").await;
    assert_eq!(refused.outcome(), "403 AuthorizationFailure");
    let forged = sas.replace("tn=tab", "tn=other");
    let refused = send(&client, &forged, ("GET", "/other()"), &[], "").await;
    assert_eq!(refused.outcome(), "403 AuthenticationFailed");
    let unnamed = sas.replace("tn=tab&", "");
    let refused = send(&client, &unnamed, ("GET", "/tab()"), &[], "").await;
    assert_eq!(refused.outcome(), "403 AuthenticationFailed");
}

/// "spk", "srk", "epk", "erk": a query returns the range only; a write outside it is refused, alone
/// and in a transaction, whatever credentials the inner requests have.
#[tokio::test]
async fn table_sas_is_limited_to_its_range() {
    let client = Client::new().await;
    for (partition, row) in [("a", "1"), ("b", "1"), ("b", "2"), ("b", "3"), ("c", "1")] {
        client.insert(partition, row, "v").await;
    }
    let range = [("spk", "b"), ("srk", "1"), ("epk", "b"), ("erk", "2")];
    let sas = of_table("raud", &range);
    let page = send(&client, &sas, ("GET", "/tab()"), &[], "").await;
    assert_eq!(page.texts("RowKey"), ["1", "2"]);
    let wide = with_query(
        "/tab()",
        &[("$filter", "PartitionKey ge 'a'"), ("$top", "1")],
    );
    let page = send(&client, &sas, ("GET", &wide), &[], "").await;
    assert_eq!(
        (
            page.texts("PartitionKey").join(""),
            page.texts("RowKey").join("")
        ),
        ("b".into(), "1".into())
    );
    let body = entity("b", "3x", "v");
    let refused = send(&client, &sas, ("POST", "/tab"), &[], &body).await;
    assert_eq!(refused.outcome(), "403 AuthorizationFailure");
    let within = send(
        &client,
        &sas,
        ("POST", "/tab"),
        &[],
        &entity("b", "1x", "v"),
    )
    .await;
    assert_eq!(within.outcome(), "201");
    let outside = send(&client, &sas, ("GET", &address("c", "1")), &[], "").await;
    assert_eq!(outside.outcome(), "404 ResourceNotFound");
    let target = "/tab(PartitionKey='b',RowKey='3')?spk=a&srk=0&epk=z&erk=z&tn=tab";
    let transaction = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\
         Content-Type: application/http\r\n\r\nDELETE {target} HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n\
         --c--\r\n--b--\r\n"
    );
    let headers = [("content-type", "multipart/mixed; boundary=b")];
    let query = format!("/{ACCOUNT}/$batch?{sas}");
    let refused = client
        .call("POST", &query, &headers, transaction.into())
        .await;
    assert_eq!(refused.statuses(), ["403"], "{}", refused.text);
    assert_eq!(client.get("b", "3").await.outcome(), "200");
}

/// "Create an account SAS": tables are containers, entities are objects.
#[tokio::test]
async fn account_sas_treats_tables_as_containers() {
    let client = Client::new().await;
    for (types, letters, method, path, body, expected) in [
        (
            "c",
            "c",
            "POST",
            "/Tables",
            "{\"TableName\":\"made\"}",
            "201",
        ),
        ("c", "l", "GET", "/Tables", "", "200"),
        ("c", "d", "DELETE", "/Tables('made')", "", "204"),
        (
            "c",
            "r",
            "GET",
            "/Tables",
            "",
            "403 AuthorizationPermissionMismatch",
        ),
        (
            "o",
            "l",
            "GET",
            "/Tables",
            "",
            "403 AuthorizationResourceTypeMismatch",
        ),
        ("o", "r", "GET", "/tab()", "", "200"),
        (
            "c",
            "r",
            "GET",
            "/tab()",
            "",
            "403 AuthorizationResourceTypeMismatch",
        ),
        (
            "o",
            "a",
            "POST",
            "/tab",
            "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}",
            "201",
        ),
        (
            "s",
            "r",
            "GET",
            "/?restype=service&comp=properties",
            "",
            "200",
        ),
    ] {
        let sas = of_account(types, letters);
        let answer = send(&client, &sas, (method, path), &[], body).await;
        assert_eq!(
            answer.outcome(),
            expected,
            "{types} {letters} {method} {path}"
        );
    }
}

/// "Define a stored access policy": the table stores the terms, and changing them there changes
/// what the signature permits.
#[tokio::test]
async fn table_stores_the_terms_of_a_policy() {
    let client = Client::new().await;
    client.insert("p", "r", "v").await;
    let policy = "<SignedIdentifiers><SignedIdentifier><Id>reader</Id><AccessPolicy>\
        <Start>2020-01-01T00:00:00Z</Start><Expiry>2099-01-01T00:00:00Z</Expiry>\
        <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    let set = client.send_with(
        "PUT",
        "/tab?comp=acl",
        &[("content-type", "application/xml")],
        policy,
    );
    assert_eq!(set.await.outcome(), "204");
    let sas = ServiceSas {
        version: ApiVersion::V2019_02_02,
        target: SasTarget {
            service: Service::Table,
            account: ACCOUNT,
            name: "tab",
            blob: None,
            snapshot: "",
        },
        permissions: "",
        start: None,
        expiry: None,
        policy_id: "reader",
        ip: "",
        protocol: "",
        more: &[],
    };
    let sas = sas.sign(key().as_bytes());
    let path = address("p", "r");
    assert_eq!(
        send(&client, &sas, ("GET", &path), &[], "").await.outcome(),
        "200"
    );
    let any = [("if-match", "*")];
    let refused = send(&client, &sas, ("DELETE", &path), &any, "").await;
    assert_eq!(refused.outcome(), "403 AuthorizationPermissionMismatch");
    client.send("PUT", "/tab?comp=acl", "").await;
    let revoked = send(&client, &sas, ("GET", &path), &[], "").await;
    assert_eq!(revoked.outcome(), "403 AuthenticationFailed");
}

/// As in Azurite: a SAS in the query counts when the key's signature is wrong, with its permissions
/// only.
#[tokio::test]
async fn sas_counts_beside_a_wrong_key_signature() {
    let client = Client::new().await;
    let date = client.emulator.now().rfc1123();
    let dated = ("x-ms-date", date.as_str());
    let wrong = [
        dated,
        ("authorization", "SharedKeyLite devstoreaccount1:d3Jvbmc="),
    ];
    let undated = &wrong[1..];
    let added = entity("p", "r", "v");
    let [insert, get] = [("POST", "/tab"), ("GET", "/tab()")];
    let may_add = of_table("a", &[]);
    let spoiled = format!("{may_add}x");
    for (query, request, headers, expected) in [
        (may_add.as_str(), insert, &wrong[..], "201"),
        (&may_add, get, &wrong, "403 AuthenticationFailed"),
        (&spoiled, insert, &wrong, "403 AuthenticationFailed"),
        ("", get, &wrong, "403 AuthenticationFailed"),
        (&of_table("r", &[]), get, undated, "200"),
    ] {
        let answer = send(&client, query, request, headers, &added).await;
        assert_eq!(answer.outcome(), expected, "{query} {request:?}");
    }
    // A valid key signature counts, whatever the SAS permits.
    let path = with_query(&format!("/{ACCOUNT}/tab()"), &[]);
    let target = format!("{path}{may_add}");
    let (version, by) = (ApiVersion::V2019_02_02, (ACCOUNT, key()));
    let headers = [dated, ("x-ms-version", "2019-02-02")];
    let signed = crate::support::signature(Service::Table, version, by, "GET", &target, &headers);
    let all = [headers[0], headers[1], ("authorization", signed.as_str())];
    let answer = client.call("GET", &target, &all, Bytes::new()).await;
    assert_eq!(answer.outcome(), "200");
}

/// A missing account has no service, so the error has the common form.
#[tokio::test]
async fn missing_account_has_the_common_error_form() {
    let client = Client::new().await;
    let headers = [("authorization", "SharedKeyLite nobody:d3Jvbmc=")];
    for target in [
        "/nobody/Tables".to_owned(),
        format!("/nobody/tab?{}", of_table("r", &[])),
    ] {
        let headers = if target.contains('?') {
            &[][..]
        } else {
            &headers
        };
        let answer = client.call("GET", &target, headers, Bytes::new()).await;
        assert_eq!(answer.outcome(), "404 ", "{}", answer.text);
        assert!(
            answer.text.contains("<Error><Code>ResourceNotFound</Code>"),
            "{}",
            answer.text
        );
        assert_eq!(answer.header("content-type"), "application/xml");
    }
}
