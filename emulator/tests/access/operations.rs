//! Every operation of the register with every kind of credential: `fixtures/access.tsv`.
//!
//! An authorised request fails with its `timeout`, which is not a number and is checked right after
//! authorisation; so nothing changes, and all cells use the same emulator.

use std::sync::Arc;

use parking_lot::Mutex;
use smalt::{AccountSettings, Config, OAuth, Service, Timestamp, register};
use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::{AccountSas, ServiceSas, UserDelegationSas};
use smalt_protocol::xml::user_delegation_key::UserDelegationKey;

use super::rows::{ALL, Kind, Letters, Row};
use super::world::{By, directory_sas};
use crate::support::{ACCOUNT, Client, config, key};

const LET_IN: &str = "400 InvalidQueryParameterValue";
const FAILED: &str = "403 AuthenticationFailed";
const UNAUTHORISED: &str = "403 AuthorizationFailure";
const OTHER_LETTER: &str = "403 AuthorizationPermissionMismatch";
const NOBODY: &str = "401 NoAuthenticationInformation";

/// The resources that rows refer to, and the operation that ran last.
struct Subject {
    world: Client,
    /// An account with a hierarchical namespace, through the Data Lake interface.
    lake: Client,
    routed: Arc<Mutex<Option<&'static str>>>,
    token: String,
    keys: [(Service, UserDelegationKey); 2],
}

impl Subject {
    async fn new() -> Self {
        let routed = Arc::new(Mutex::new(None));
        let open = || {
            let seen = Arc::clone(&routed);
            let config = Config {
                oauth: OAuth::Basic,
                ..config()
            };
            Client::of(|builder| {
                let builder = builder.config(config);
                builder.observe(move |exchange| *seen.lock() = exchange.operation)
            })
        };
        let (world, lake) = (open(), open());
        let settings = AccountSettings {
            hierarchical_namespace: true,
            ..AccountSettings::default()
        };
        lake.change_settings(settings);
        for name in ["box", "blobs", "whole"] {
            lake.create(name).await;
        }
        world.create("box").await;
        for (container, level) in [("blobs", "blob"), ("whole", "container")] {
            let path = format!("/{container}?restype=container");
            let public = [("x-ms-blob-public-access", level)];
            assert_eq!(world.try_("PUT", &path, &public).await, "201", "{path}");
        }
        let queues = world.at(Service::Queue);
        assert_eq!(queues.try_("PUT", "/jobs", &[]).await, "201");
        let made = world.at(Service::Table).create_table("rows").await;
        assert_eq!(made.outcome(), "201");
        let token = world.token();
        let keys = [
            (Service::Blob, delegation_key(&world, Service::Blob).await),
            (Service::Queue, delegation_key(&world, Service::Queue).await),
        ];
        Subject {
            world,
            lake: lake.as_data_lake(),
            routed,
            token,
            keys,
        }
    }

    /// Sends a row's request, and checks that it is for the row's operation.
    async fn ask(&self, row: &Row, by: By<'_>, container: &str) -> String {
        let join = if row.path.contains('?') { '&' } else { '?' };
        let path = format!("{}{join}timeout=none", row.path.replace("{c}", container));
        let world = self.world_of(row);
        let answer = world.ask(by, row.method, &path, &row.headers, "").await;
        assert_eq!(*self.routed.lock(), Some(row.operation), "{row:?}");
        answer.outcome()
    }

    fn world_of(&self, row: &Row) -> Client {
        match row.of_lake {
            true => self.lake.clone(),
            false => self.world.at(row.service),
        }
    }

    async fn check(&self, row: &Row, by: By<'_>, expected: &str, about: &str) {
        let outcome = self.ask(row, by, "box").await;
        assert_eq!(outcome, expected, "{about} at {row:?}");
    }

    /// Checks every bound of a row with a kind of SAS.
    async fn check_kind(&self, row: &Row, kind: Kind) {
        let asked = row.asked_of(kind);
        let refusal = match asked {
            _ if !row.is_reached_by(kind) => FAILED,
            Letters::Token => FAILED,
            Letters::NoSas => UNAUTHORISED,
            Letters::OneOf(_) => OTHER_LETTER,
        };
        let letting_in = if row.is_reached_by(kind) {
            LET_IN
        } else {
            FAILED
        };
        let (enough, mut short) = asked.bounds(row.all_letters());
        if row.renames() && !row.is_reached_by(kind) {
            // The permissions may suffice for the destination, which comes before the source.
            short.clear();
        }
        let enough = enough.into_iter().map(|letters| (letters, letting_in));
        let short = short.into_iter().map(|letters| (letters, refusal));
        for (letters, expected) in short.chain(enough) {
            let letters = granted(row.service, kind, &letters);
            // A SAS without permissions is refused for that reason.
            if !letters.is_empty() {
                let sas = self.sas(row, kind, &letters).await;
                let about = format!("{kind:?} of {letters}");
                self.check(row, By::Sas(&sas), expected, &about).await;
            }
        }
    }

    /// Returns a SAS of this kind for a row's resource.
    async fn sas(&self, row: &Row, kind: Kind, letters: &str) -> String {
        let letter = row.service.letter().to_string();
        match kind {
            Kind::Account => self.account_sas(&letter, "sco", letters),
            Kind::Directory => {
                let expiry = self.expiry().iso_s();
                directory_sas("/blob/devstoreaccount1/box/d", letters, &expiry)
            }
            Kind::DelegatedWhole | Kind::DelegatedBlob => {
                let found = self
                    .keys
                    .iter()
                    .find(|(service, _)| *service == row.service);
                let sas = UserDelegationSas {
                    version: self.world.version,
                    target: target(row.service, kind),
                    permissions: letters,
                    start: None,
                    expiry: self.expiry(),
                    protocol: "",
                    key: &found.unwrap().1,
                };
                sas.sign()
            }
            Kind::Whole | Kind::Policy | Kind::Blob => {
                let is_policy = kind == Kind::Policy;
                if is_policy {
                    self.set_policy(row, letters).await;
                }
                let sas = ServiceSas {
                    target: target(row.service, kind),
                    permissions: if is_policy { "" } else { letters },
                    expiry: (!is_policy).then(|| self.expiry()),
                    policy_id: if is_policy { "stored" } else { "" },
                    ..self.world.service_sas("", None, "")
                };
                sas.sign(key().as_bytes())
            }
        }
    }

    fn account_sas(&self, services: &str, resource_types: &str, letters: &str) -> String {
        let sas = AccountSas {
            services,
            resource_types,
            ..self.world.account_sas(letters)
        };
        sas.sign(key().as_bytes())
    }

    async fn set_policy(&self, row: &Row, letters: &str) {
        let path = match row.service {
            Service::Blob => "/box?restype=container&comp=acl",
            Service::Queue => "/jobs?comp=acl",
            Service::Table => "/rows?comp=acl",
        };
        let body = format!(
            "<SignedIdentifiers><SignedIdentifier><Id>stored</Id><AccessPolicy>\
             <Expiry>{}</Expiry><Permission>{letters}</Permission></AccessPolicy>\
             </SignedIdentifier></SignedIdentifiers>",
            self.expiry().iso_s()
        );
        let blobs = self.world_of(row).at(row.service);
        let set = blobs.send("PUT", path, &[], body).await;
        assert!([200, 204].contains(&set.status), "{set:?}");
    }

    fn expiry(&self) -> Timestamp {
        self.world.now().plus_s(3600)
    }
}

async fn delegation_key(world: &Client, service: Service) -> UserDelegationKey {
    let (start, expiry) = (world.now(), world.now().plus_s(7200));
    let body = format!(
        "<KeyInfo><Start>{}</Start><Expiry>{}</Expiry></KeyInfo>",
        start.iso_s(),
        expiry.iso_s()
    );
    let path = "/?restype=service&comp=userdelegationkey";
    let token = world.token();
    let asked = world.at(service);
    let answer = asked.ask(By::Token(&token), "POST", path, &[], &body).await;
    UserDelegationKey::read(answer.text().as_bytes()).unwrap()
}

/// Returns the permissions that a policy can grant: only letters of its service.
fn granted(service: Service, kind: Kind, letters: &str) -> String {
    let known = match service {
        Service::Queue if kind == Kind::Policy => "raup",
        Service::Table if kind == Kind::Policy => "raud",
        _ => ALL,
    };
    letters.chars().filter(|l| known.contains(*l)).collect()
}

fn target(service: Service, kind: Kind) -> SasTarget<'static> {
    let is_blob = matches!(kind, Kind::Blob | Kind::DelegatedBlob);
    SasTarget {
        service,
        account: ACCOUNT,
        name: match service {
            Service::Blob => "box",
            Service::Queue => "jobs",
            Service::Table => "rows",
        },
        blob: is_blob.then_some("d/b"),
        snapshot: "",
    }
}

const OF_BLOBS: &[Kind] = &[
    Kind::Account,
    Kind::Whole,
    Kind::Policy,
    Kind::Directory,
    Kind::Blob,
    Kind::DelegatedWhole,
    Kind::DelegatedBlob,
];
const OF_QUEUES: &[Kind] = &[
    Kind::Account,
    Kind::Whole,
    Kind::Policy,
    Kind::DelegatedWhole,
];
const OF_TABLES: &[Kind] = &[Kind::Account, Kind::Whole, Kind::Policy];

#[test]
fn every_operation_has_rows() {
    for entry in register::all().chain(register::data_lake()) {
        let has_row = Row::all().any(|r| r.service == entry.service && r.operation == entry.id);
        assert!(has_row, "{entry:?} has no row in fixtures/access.tsv");
    }
}

/// Checks a key, a token, and the bounds of each kind of SAS: the smallest sets of permissions that
/// allow an operation, and the largest that do not.
#[tokio::test]
async fn credentials_allow_the_operations_of_their_row() {
    let subject = Subject::new().await;
    for row in Row::all() {
        let is_token_only = row.letters == Letters::Token;
        let by_key = if is_token_only { FAILED } else { LET_IN };
        if row.public == "always" {
            subject.check(&row, By::Nobody, LET_IN, "nobody").await;
            continue;
        }
        subject.check(&row, By::Owner, by_key, "the key").await;
        let by_token = By::Token(&subject.token);
        subject.check(&row, by_token, LET_IN, "a token").await;
        let kinds = match row.service {
            Service::Blob => OF_BLOBS,
            Service::Queue => OF_QUEUES,
            Service::Table => OF_TABLES,
        };
        for kind in kinds {
            subject.check_kind(&row, *kind).await;
        }
    }
}

/// An account SAS is limited to its services and resource types, whatever its permissions.
#[tokio::test]
async fn account_sas_is_limited_to_its_services_and_types() {
    let subject = Subject::new().await;
    for row in Row::all().filter(|row| matches!(row.letters, Letters::OneOf(_))) {
        let own = row.service.letter();
        let others = "bqtf".replace(own, "");
        let sas = subject.account_sas(&others, "sco", row.all_letters());
        let refusal = "403 AuthorizationServiceMismatch";
        subject.check(&row, By::Sas(&sas), refusal, &others).await;
        for scope in ["s", "c", "o"] {
            let refusal = "403 AuthorizationResourceTypeMismatch";
            let expected = if row.account.contains(scope) {
                LET_IN
            } else {
                refusal
            };
            let sas = subject.account_sas(&own.to_string(), scope, row.all_letters());
            subject.check(&row, By::Sas(&sas), expected, scope).await;
        }
    }
}

/// Public access to blobs and to the whole container, and a private container.
#[tokio::test]
async fn anonymous_requests_read_public_data_only() {
    let subject = Subject::new().await;
    for row in Row::all().filter(|row| row.public != "always") {
        for (container, levels) in [
            ("box", &[][..]),
            ("blobs", &["blob"]),
            ("whole", &["blob", "container"]),
        ] {
            let is_open = levels.contains(&row.public);
            let expected = if is_open { LET_IN } else { NOBODY };
            let outcome = subject.ask(&row, By::Nobody, container).await;
            assert_eq!(outcome, expected, "{container} at {row:?}");
        }
    }
}
