//! Requests that a web page can send to the services through a user's browser. They come as if from
//! a socket, signed with the public key, as a page can sign them.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::IpAddr;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use smalt::{Clock, Emulator, Service, Socket, Timestamp, body};
use smalt_protocol::ApiVersion;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::sas::build::AccountSas;

type Headers<'a> = &'a [(&'a str, &'a str)];

const EVIL: (&str, &str) = ("origin", "https://evil.example");
const APP: (&str, &str) = ("origin", "https://app.example");
const LOCAL_APP: (&str, &str) = ("origin", "http://localhost:3000");
const OPAQUE: (&str, &str) = ("origin", "null");
const OTHER_SITE: (&str, &str) = ("sec-fetch-site", "cross-site");
const SAME_SITE: (&str, &str) = ("sec-fetch-site", "same-site");
const MESSAGE: &str = "<QueueMessage><MessageText>a</MessageText></QueueMessage>";
const RULES: &str = "<StorageServiceProperties><Cors><CorsRule>\
    <AllowedOrigins>https://app.example</AllowedOrigins><AllowedMethods>GET,POST</AllowedMethods>\
    <MaxAgeInSeconds>1</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders/></CorsRule></Cors>\
    </StorageServiceProperties>";

/// An emulator with the queue `jobs`, the blob `box/b` and the table `rows`.
struct World(Emulator);

impl World {
    async fn new() -> Self {
        let clock = Clock::manual(Timestamp::from_unix_s(1_700_000_000));
        let builder = Emulator::builder().clock(clock).seed(1);
        let world = World(builder.open().unwrap());
        let block = [("x-ms-blob-type", "BlockBlob")];
        let json = [("content-type", "application/json")];
        let table = r#"{"TableName":"rows"}"#;
        for (service, method, path, headers, content) in [
            (Service::Queue, "PUT", "/jobs", &[][..], ""),
            (Service::Blob, "PUT", "/box?restype=container", &[], ""),
            (Service::Blob, "PUT", "/box/b", &block, "a picture"),
            (Service::Table, "POST", "/Tables", &json, table),
        ] {
            let made = world.ask(service, method, path, headers, content).await;
            assert_eq!(made.0, 201, "{path}: {}", made.1);
        }
        world
    }

    /// Sends a request over a connection to 127.0.0.1. Returns the response's status and body.
    async fn ask(
        &self,
        service: Service,
        method: &str,
        path: &str,
        headers: Headers<'_>,
        content: &str,
    ) -> (u16, String) {
        let headers = [&[("host", "127.0.0.1:10000")], headers].concat();
        let request = (method, path, headers.as_slice(), content);
        self.ask_at("127.0.0.1", service, request).await
    }

    /// Sends a request over a connection to this address of the server.
    async fn ask_at(
        &self,
        local: &str,
        service: Service,
        (method, path, headers, content): (&str, &str, Headers<'_>, &str),
    ) -> (u16, String) {
        let sas = AccountSas {
            version: ApiVersion::LATEST,
            account: EMULATOR_ACCOUNT_NAME,
            services: "bqt",
            resource_types: "sco",
            permissions: "rwdlacup",
            start: None,
            expiry: self.0.now().plus_s(3600),
            ip: "",
            protocol: "",
            encryption_scope: "",
        };
        let key = AccountKey::parse(EMULATOR_ACCOUNT_KEY).unwrap();
        let sas = sas.sign(key.as_bytes());
        let join = if path.contains('?') { '&' } else { '?' };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/{EMULATOR_ACCOUNT_NAME}{path}{join}{sas}"))
            .header("content-length", content.len());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let socket = Socket {
            service: Some(service),
            peer: Some(IpAddr::from([127, 0, 0, 1])),
            local: Some(local.parse().unwrap()),
            ..Socket::default()
        };
        let content = Bytes::from(content.to_owned());
        let request = request.body(body::full(content)).unwrap();
        let response = self.0.call_on(request, socket).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        (head.status.as_u16(), body)
    }

    async fn put_message(&self, headers: Headers<'_>) -> u16 {
        let path = "/jobs/messages";
        let put = self.ask(Service::Queue, "POST", path, headers, MESSAGE);
        put.await.0
    }

    async fn take_messages(&self, headers: Headers<'_>) -> u16 {
        let path = "/jobs/messages?numofmessages=32&visibilitytimeout=604800";
        self.ask(Service::Queue, "GET", path, headers, "").await.0
    }

    /// Returns the number of visible messages.
    async fn visible(&self) -> usize {
        let path = "/jobs/messages?peekonly=true&numofmessages=32";
        let (_, body) = self.ask(Service::Queue, "GET", path, &[], "").await;
        body.matches("<QueueMessage>").count()
    }

    async fn allow_app(&self) {
        for service in [Service::Queue, Service::Blob, Service::Table] {
            let path = "/?restype=service&comp=properties";
            assert_eq!(self.ask(service, "PUT", path, &[], RULES).await.0, 202);
        }
    }
}

/// A form or a script of another origin sends a POST without a preflight; an image or a link sends
/// a GET without an origin.
#[tokio::test]
async fn page_of_another_machine_cannot_put_or_get_messages() {
    let world = World::new().await;
    assert_eq!(world.put_message(&[]).await, 201);
    for page in [&[EVIL][..], &[OPAQUE], &[EVIL, OTHER_SITE], &[APP]] {
        assert_eq!(world.put_message(page).await, 403, "{page:?}");
        assert_eq!(world.take_messages(page).await, 403, "{page:?}");
    }
    assert_eq!(world.take_messages(&[OTHER_SITE]).await, 403);
    assert_eq!(world.visible().await, 1);
}

/// Pages of this machine, clients that are not browsers, and pages of the server itself.
#[tokio::test]
async fn pages_of_this_machine_and_programs_are_served() {
    let world = World::new().await;
    for sender in [
        &[][..],
        &[LOCAL_APP],
        &[LOCAL_APP, OTHER_SITE],
        &[("origin", "http://127.0.0.1:10000")],
        &[("origin", "my-script")],
        &[("sec-fetch-mode", "cors")],
    ] {
        assert_eq!(world.put_message(sender).await, 201, "{sender:?}");
    }
    assert_eq!(world.visible().await, 6);
    assert_eq!(world.take_messages(&[SAME_SITE]).await, 200);
}

/// A CORS rule allows its origins and methods; only the rules decide about a preflight.
#[tokio::test]
async fn cors_rule_allows_its_origin() {
    let world = World::new().await;
    let preflight = async |page, method| {
        let headers = [page, ("access-control-request-method", method)];
        let path = "/jobs/messages";
        world
            .ask(Service::Queue, "OPTIONS", path, &headers, "")
            .await
            .0
    };
    assert_eq!(preflight(APP, "POST").await, 403);
    world.allow_app().await;
    assert_eq!(preflight(APP, "POST").await, 200);
    assert_eq!(preflight(EVIL, "POST").await, 403);
    assert_eq!(world.put_message(&[APP, OTHER_SITE]).await, 201);
    assert_eq!(world.put_message(&[EVIL]).await, 403);
    assert_eq!(world.visible().await, 1);
    assert_eq!(world.take_messages(&[APP]).await, 200);
    let deleted = world.ask(Service::Queue, "DELETE", "/jobs", &[APP], "");
    assert_eq!(deleted.await.0, 403, "the rule has no such method");
}

/// Content that a page shows without reading it is served: images, downloads, followed links.
#[tokio::test]
async fn images_are_served_and_foreign_scripts_read_nothing() {
    let world = World::new().await;
    for (headers, expected) in [
        (&[OTHER_SITE][..], 200),
        (&[OTHER_SITE, ("sec-fetch-dest", "image")], 200),
        (&[("sec-fetch-site", "none")], 200),
        (&[LOCAL_APP], 200),
        (&[EVIL], 403),
        (&[OPAQUE], 403),
    ] {
        let answer = world.ask(Service::Blob, "GET", "/box/b", headers, "").await;
        assert_eq!(answer.0, expected, "{headers:?}: {}", answer.1);
    }
}

/// Each service refuses in its own form, and gives the reason.
#[tokio::test]
async fn refusal_names_the_origin_and_the_host() {
    let world = World::new().await;
    for (service, path) in [
        (Service::Blob, "/box/b"),
        (Service::Queue, "/jobs?comp=metadata"),
        (Service::Table, "/rows()"),
    ] {
        let (status, body) = world.ask(service, "GET", path, &[EVIL], "").await;
        assert_eq!(status, 403);
        for part in ["AuthorizationFailure", "https://evil.example", "CORS"] {
            assert!(body.contains(part), "{part}: {body}");
        }
        let request = ("GET", path, &[("host", "evil.example:10000")][..], "");
        let (status, body) = world.ask_at("127.0.0.1", service, request).await;
        assert_eq!(status, 400);
        for part in ["InvalidHeaderValue", "evil.example", "--allowHost"] {
            assert!(body.contains(part), "{part}: {body}");
        }
    }
}

/// Other machines may use any name for a server, as for a container in its own network; on its
/// loopback address the rule still applies.
#[tokio::test]
async fn other_machines_may_use_any_host_name() {
    let world = World::new().await;
    for (local, expected) in [
        ("172.17.0.2", 200),
        ("fd00::2", 200),
        ("127.0.0.1", 400),
        ("::1", 400),
        ("::ffff:127.0.0.1", 400),
    ] {
        let headers = [("host", "storage.example:10000")];
        let request = ("GET", "/box/b", &headers[..], "");
        let (status, body) = world.ask_at(local, Service::Blob, request).await;
        assert_eq!(status, expected, "{local}: {body}");
        let from_page = ("GET", "/box/b", &[headers[0], EVIL][..], "");
        let (status, _) = world.ask_at(local, Service::Blob, from_page).await;
        assert!(status >= 400, "{local}");
    }
}
