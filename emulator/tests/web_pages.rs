//! Requests that a web page can send to the services through a user's browser. They come as if from
//! a socket, signed with the public key, as a page can sign them.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::IpAddr;

use smalt::{Service, Socket};

use crate::support::{ACCOUNT, Answer, Client, key, request};

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
struct World(Client);

impl World {
    async fn new() -> Self {
        let client = Client::new();
        client.create("box").await;
        client.put("/box/b", "a picture").await;
        let queue = client.at(Service::Queue).try_("PUT", "/jobs", &[]).await;
        assert_eq!(queue, "201");
        let table = client.at(Service::Table).create_table("rows").await;
        assert_eq!(table.outcome(), "201");
        World(client)
    }

    /// Sends a request over a connection to 127.0.0.1.
    async fn ask(
        &self,
        service: Service,
        method: &str,
        path: &str,
        headers: Headers<'_>,
        content: &str,
    ) -> Answer {
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
    ) -> Answer {
        let sas = self.0.account_sas("rwdlacup").sign(key().as_bytes());
        let join = if path.contains('?') { '&' } else { '?' };
        let url = format!("/{ACCOUNT}{path}{join}{sas}");
        let length = content.len().to_string();
        let headers = [&[("content-length", length.as_str())], headers].concat();
        let request = request(method, &url, &headers, content.to_owned());
        let socket = Socket {
            service: Some(service),
            peer: Some(IpAddr::from([127, 0, 0, 1])),
            local: Some(local.parse().unwrap()),
            ..Socket::default()
        };
        let emulator = self.0.emulator();
        Answer::of(emulator.call_on(request, socket).await.unwrap()).await
    }

    async fn put_message(&self, headers: Headers<'_>) -> u16 {
        let path = "/jobs/messages";
        let put = self.ask(Service::Queue, "POST", path, headers, MESSAGE);
        put.await.status
    }

    async fn take_messages(&self, headers: Headers<'_>) -> u16 {
        let path = "/jobs/messages?numofmessages=32&visibilitytimeout=604800";
        self.ask(Service::Queue, "GET", path, headers, "")
            .await
            .status
    }

    /// Returns the number of visible messages.
    async fn visible(&self) -> usize {
        let path = "/jobs/messages?peekonly=true&numofmessages=32";
        let page = self.ask(Service::Queue, "GET", path, &[], "").await;
        page.text().matches("<QueueMessage>").count()
    }

    async fn allow_app(&self) {
        for service in [Service::Queue, Service::Blob, Service::Table] {
            let path = "/?restype=service&comp=properties";
            let set = self.ask(service, "PUT", path, &[], RULES).await;
            assert_eq!(set.status, 202);
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
            .status
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
    assert_eq!(deleted.await.status, 403, "the rule has no such method");
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
        assert_eq!(answer.status, expected, "{headers:?}: {}", answer.text());
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
        let answer = world.ask(service, "GET", path, &[EVIL], "").await;
        assert_eq!(answer.status, 403);
        for part in ["AuthorizationFailure", "https://evil.example", "CORS"] {
            assert!(answer.text().contains(part), "{part}: {answer:?}");
        }
        let request = ("GET", path, &[("host", "evil.example:10000")][..], "");
        let answer = world.ask_at("127.0.0.1", service, request).await;
        assert_eq!(answer.status, 400);
        for part in ["InvalidHeaderValue", "evil.example", "--allowHost"] {
            assert!(answer.text().contains(part), "{part}: {answer:?}");
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
        let answer = world.ask_at(local, Service::Blob, request).await;
        assert_eq!(answer.status, expected, "{local}: {answer:?}");
        let from_page = ("GET", "/box/b", &[headers[0], EVIL][..], "");
        let answer = world.ask_at(local, Service::Blob, from_page).await;
        assert!(answer.status >= 400, "{local}");
    }
}
