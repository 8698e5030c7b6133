//! Row 9: the static website of an account, at its own host name.

use crate::support::{Answer, BLOCK, Client, request};

const HOST: &str = "devstoreaccount1.web.localhost:10000";

async fn page(
    client: &Client,
    (method, host, path): (&str, &str, &str),
    headers: &[(&str, &str)],
) -> Answer {
    let url = format!("http://{host}{path}");
    client.call(request(method, &url, headers, "")).await
}

async fn enable(client: &Client, documents: &str) {
    let text = format!(
        "<StorageServiceProperties><StaticWebsite><Enabled>true</Enabled>{documents}\
         </StaticWebsite></StorageServiceProperties>"
    );
    let set = client
        .send("PUT", "/?restype=service&comp=properties", &[], text)
        .await;
    assert_eq!(set.status, 202);
}

/// Creates a website of four pages in a private container, which exists once it is enabled.
async fn site(documents: &str) -> Client {
    let client = Client::new();
    enable(&client, documents).await;
    for name in ["index.html", "docs/index.html", "404.html", "a%20b.css"] {
        let headers = [BLOCK, ("x-ms-blob-content-type", "text/html")];
        let path = format!("/$web/{name}");
        let put = client.send("PUT", &path, &headers, name).await;
        assert_eq!(put.status, 201);
    }
    client
}

const INDEX: &str = "<IndexDocument>index.html</IndexDocument>";
const ERROR: &str = "<ErrorDocument404Path>404.html</ErrorDocument404Path>";
const DEFAULT: &str = "<DefaultIndexDocumentPath>index.html</DefaultIndexDocumentPath>";

#[tokio::test]
async fn website_serves_its_pages_to_everybody() {
    let client = site(&format!("{INDEX}{ERROR}")).await;
    for (path, status, text) in [
        ("/", 200, "index.html"),
        ("/index.html", 200, "index.html"),
        ("/docs/", 200, "docs/index.html"),
        ("/a%20b.css?v=2", 200, "a%20b.css"),
        ("/docs", 404, "404.html"),
        ("/none.html", 404, "404.html"),
        ("/none/", 404, "404.html"),
    ] {
        for host in [HOST, "devstoreaccount1.z13.web.core.windows.net"] {
            let found = page(&client, ("GET", host, path), &[]).await;
            assert_eq!((found.status, found.text()), (status, text), "{host}{path}");
            assert_eq!(found.headers["content-type"], "text/html");
        }
    }
    // What a client has or asks of the missing page is not said of the one in its place.
    let own = page(&client, ("HEAD", HOST, "/404.html"), &[]).await;
    let asked = [
        ("if-none-match", own.headers["etag"].to_str().unwrap()),
        ("range", "bytes=0-1"),
    ];
    let found = page(&client, ("GET", HOST, "/none.html"), &asked).await;
    assert_eq!((found.status, found.text()), (404, "404.html"));
    // The same container is private at the service.
    let host = "devstoreaccount1.blob.localhost:10000";
    let read = page(&client, ("GET", host, "/$web/index.html"), &[]).await;
    assert_eq!(read.status, 404);
}

#[tokio::test]
async fn website_answers_conditions_ranges_and_methods() {
    let client = site(INDEX).await;
    let head = page(&client, ("HEAD", HOST, "/"), &[]).await;
    assert_eq!(head.headers["content-length"], "10");
    let same = [("if-none-match", head.headers["etag"].to_str().unwrap())];
    assert_eq!(page(&client, ("GET", HOST, "/"), &same).await.status, 304);
    let part = page(&client, ("GET", HOST, "/"), &[("range", "bytes=0-4")]).await;
    assert_eq!((part.status, part.text()), (206, "index"));
    let put = page(&client, ("PUT", HOST, "/index.html"), &[]).await;
    assert_eq!(put.status, 405);
    let none = page(&client, ("GET", HOST, "/none"), &[]).await;
    assert_eq!(none.status, 404);
    assert_eq!(none.text(), "The requested content does not exist.");
}

#[tokio::test]
async fn website_of_one_page_answers_every_path_and_a_disabled_one_none() {
    let client = site(&format!("{INDEX}{DEFAULT}")).await;
    for host in [HOST, "devstoreaccount1-secondary.web.localhost:10000"] {
        let found = page(&client, ("GET", host, "/user/7"), &[]).await;
        assert_eq!((found.status, found.text()), (200, "index.html"), "{host}");
    }
    let off = "<StorageServiceProperties><StaticWebsite><Enabled>false</Enabled></StaticWebsite>\
               </StorageServiceProperties>";
    client
        .send("PUT", "/?restype=service&comp=properties", &[], off)
        .await;
    assert_eq!(page(&client, ("GET", HOST, "/"), &[]).await.status, 404);
    let other = "other.web.localhost:10000";
    assert_eq!(page(&client, ("GET", other, "/"), &[]).await.status, 404);
}
