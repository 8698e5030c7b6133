//! Reads a seed in TOML. docs/state.md shows one with every field.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use smalt_protocol::Service;
use smalt_protocol::connection_string::EMULATOR_ACCOUNT_NAME;
use smalt_protocol::table::key::{entity_path, table_path};
use smalt_protocol::uri::{self, encode_path};
use smalt_protocol::xml::service_properties::push_cors;
use smalt_protocol::xml::{CorsRule, XmlWriter};
use toml::Spanned;

use super::call::{Call, Content};
use super::plan::{Ask, Kind, NewBlob, Plan, Step, bytes, content_type, file};
use super::{Place, SeedError, entity, folder};
use crate::config::Account;
use crate::disk::{Disk, read_small};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seed {
    account: Option<String>,
    #[serde(default, rename = "container")]
    containers: Vec<Spanned<Container>>,
    #[serde(default, rename = "queue")]
    queues: Vec<Spanned<Queue>>,
    #[serde(default, rename = "table")]
    tables: Vec<Spanned<Table>>,
    #[serde(default, rename = "service")]
    services: Vec<Spanned<ServiceSeed>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Container {
    name: String,
    account: Option<String>,
    #[serde(default)]
    access: Access,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    folder: Option<PathBuf>,
    #[serde(default, rename = "blob")]
    blobs: Vec<Spanned<Blob>>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Access {
    #[default]
    Private,
    Blob,
    Container,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Blob {
    name: String,
    #[serde(default, rename = "type")]
    kind: Kind,
    text: Option<String>,
    base64: Option<String>,
    file: Option<PathBuf>,
    content_type: Option<String>,
    content_encoding: Option<String>,
    content_language: Option<String>,
    content_disposition: Option<String>,
    cache_control: Option<String>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    tier: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Queue {
    name: String,
    account: Option<String>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    #[serde(default)]
    messages: Vec<String>,
    #[serde(default, rename = "message")]
    described: Vec<Spanned<Message>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    text: String,
    visibility_timeout_s: Option<u64>,
    time_to_live_s: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    account: Option<String>,
    #[serde(default, rename = "entity")]
    entities: Vec<Spanned<toml::Table>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceSeed {
    name: ServiceName,
    account: Option<String>,
    #[serde(default)]
    cors: Vec<Cors>,
    delete_retention_days: Option<u32>,
    default_version: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ServiceName {
    Blob,
    Queue,
    Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cors {
    origins: Vec<String>,
    methods: Vec<String>,
    #[serde(default)]
    allowed_headers: Vec<String>,
    #[serde(default)]
    exposed_headers: Vec<String>,
    #[serde(default)]
    max_age_s: u32,
}

impl Cors {
    fn rule(&self) -> CorsRule {
        CorsRule {
            methods: self.methods.clone(),
            origins: self.origins.clone(),
            allowed_headers: self.allowed_headers.clone(),
            exposed_headers: self.exposed_headers.clone(),
            max_age_s: self.max_age_s,
        }
    }
}

/// Reads a seed; relative paths in it start from its directory.
pub(super) fn read(
    plan: &mut Plan,
    accounts: &BTreeMap<String, Account>,
    disk: &dyn Disk,
    path: &Path,
) -> Result<(), SeedError> {
    let io = |error| SeedError::Io {
        file: path.to_owned(),
        error,
    };
    let text = read_small(disk, path).map_err(io)?;
    let text = text.ok_or_else(|| io(std::io::ErrorKind::NotFound.into()))?;
    let mut reader = Reader {
        plan,
        accounts,
        disk,
        path,
        ends: Vec::new(),
        text: String::from_utf8_lossy(&text).into_owned(),
        account: first(accounts).to_owned(),
    };
    let ends = reader.text.match_indices('\n').map(|(at, _)| at);
    reader.ends = ends.collect();
    let seed: Seed = toml::from_str(&reader.text).map_err(|error| {
        let at = error.span().unwrap_or_default();
        reader.invalid(&at, format!("{}{}", reader.field(&at), error.message()))
    })?;
    reader.seed(&seed)
}

/// Returns the default account of a seed: Azurite's, or else the first.
pub(super) fn first(accounts: &BTreeMap<String, Account>) -> &str {
    let known = accounts.get_key_value(EMULATOR_ACCOUNT_NAME);
    known
        .or_else(|| accounts.first_key_value())
        .map_or("", |(name, _)| name)
}

struct Reader<'a> {
    plan: &'a mut Plan,
    accounts: &'a BTreeMap<String, Account>,
    disk: &'a dyn Disk,
    path: &'a Path,
    text: String,
    /// Offsets of the line ends.
    ends: Vec<usize>,
    account: String,
}

impl Reader<'_> {
    fn seed(&mut self, seed: &Seed) -> Result<(), SeedError> {
        if let Some(account) = &seed.account {
            self.account = self.account(Some(account), &(0..0))?;
        }
        for service in &seed.services {
            self.service(service.get_ref(), &service.span())?;
        }
        for container in &seed.containers {
            self.container(container.get_ref(), &container.span())?;
        }
        for queue in &seed.queues {
            self.queue(queue.get_ref(), &queue.span())?;
        }
        for table in &seed.tables {
            self.table(table.get_ref(), &table.span())?;
        }
        Ok(())
    }

    fn container(&mut self, container: &Container, at: &Range<usize>) -> Result<(), SeedError> {
        let account = self.account(container.account.as_ref(), at)?;
        let mut headers = metadata(&container.metadata);
        match container.access {
            Access::Private => {}
            Access::Blob => headers.push(("x-ms-blob-public-access".into(), "blob".into())),
            Access::Container => {
                headers.push(("x-ms-blob-public-access".into(), "container".into()));
            }
        }
        self.plan
            .container(self.place(at), &account, &container.name, headers);
        for blob in &container.blobs {
            self.blob(&account, &container.name, blob.get_ref(), &blob.span())?;
        }
        if let Some(inside) = &container.folder {
            let blobs = container.blobs.iter();
            let names: BTreeSet<&str> = blobs.map(|b| b.get_ref().name.as_str()).collect();
            let described = |name: &str| names.contains(name);
            let inside = self.beside(inside);
            let names = (account.as_str(), container.name.as_str());
            folder::blobs(self.plan, self.disk, names, &inside, &described)?;
        }
        Ok(())
    }

    fn blob(
        &mut self,
        account: &str,
        container: &str,
        blob: &Blob,
        at: &Range<usize>,
    ) -> Result<(), SeedError> {
        let content = self.content(blob, at)?;
        let guessed = content_type(&blob.name).map(str::to_owned);
        let fields = [
            (
                "x-ms-blob-content-type",
                blob.content_type.clone().or(guessed),
            ),
            ("x-ms-blob-content-encoding", blob.content_encoding.clone()),
            ("x-ms-blob-content-language", blob.content_language.clone()),
            (
                "x-ms-blob-content-disposition",
                blob.content_disposition.clone(),
            ),
            ("x-ms-blob-cache-control", blob.cache_control.clone()),
            ("x-ms-access-tier", blob.tier.clone()),
            ("x-ms-tags", tags(&blob.tags)),
        ];
        let mut headers = metadata(&blob.metadata);
        headers.extend(
            fields
                .into_iter()
                .filter_map(|(n, v)| Some((n.to_owned(), v?))),
        );
        let new = NewBlob {
            account,
            container,
            name: &blob.name,
            kind: blob.kind,
            content,
            headers,
        };
        self.plan.blob(self.place(at), new);
        Ok(())
    }

    fn content(&self, blob: &Blob, at: &Range<usize>) -> Result<Content, SeedError> {
        match (&blob.text, &blob.base64, &blob.file) {
            (None, None, None) => Ok(bytes("")),
            (Some(text), None, None) => Ok(bytes(text.clone())),
            (None, Some(text), None) => match STANDARD.decode(text) {
                Ok(decoded) => Ok(bytes(decoded)),
                Err(error) => Err(self.invalid(at, format!("base64: {error}"))),
            },
            (None, None, Some(path)) => {
                file(self.disk, self.beside(path)).map_err(|error| match error {
                    SeedError::Io { file, error } => {
                        self.invalid(at, format!("file: cannot read {}: {error}", file.display()))
                    }
                    other => other,
                })
            }
            _ => Err(self.invalid(at, "use only one of text, base64 and file".to_owned())),
        }
    }

    fn queue(&mut self, queue: &Queue, at: &Range<usize>) -> Result<(), SeedError> {
        let account = self.account(queue.account.as_ref(), at)?;
        let path = format!("/{}", encode_path(&queue.name));
        let call = |method, path: &str| Call::new(&account, Service::Queue, method, path);
        let mut make = call("PUT", &path);
        make.headers = metadata(&queue.metadata);
        let mut makes = vec![make];
        let plain = queue.messages.iter().map(|text| (text, None, None));
        let described = queue.described.iter().map(|message| {
            let message = message.get_ref();
            (
                &message.text,
                message.visibility_timeout_s,
                message.time_to_live_s,
            )
        });
        for (text, visibility_timeout_s, time_to_live_s) in plain.chain(described) {
            let mut target = format!("{path}/messages");
            let mut glue = '?';
            for (name, value) in [
                (
                    "visibilitytimeout",
                    visibility_timeout_s.map(|s| s.to_string()),
                ),
                ("messagettl", time_to_live_s.map(|s| s.to_string())),
            ] {
                if let Some(value) = value {
                    target += &format!("{glue}{name}={value}");
                    glue = '&';
                }
            }
            let mut document = XmlWriter::new();
            document.open("QueueMessage");
            document.element("MessageText", text);
            document.close("QueueMessage");
            makes.push(call("POST", &target).content(bytes(document.finish())));
        }
        self.plan.steps.push(Step {
            place: self.place(at),
            what: format!("queue {:?}", queue.name),
            asks: Ask::Request(call("GET", &format!("{path}?comp=metadata"))),
            makes,
        });
        Ok(())
    }

    fn table(&mut self, table: &Table, at: &Range<usize>) -> Result<(), SeedError> {
        let account = self.account(table.account.as_ref(), at)?;
        let call = |method, path: &str| {
            Call::new(&account, Service::Table, method, path)
                .header("accept", "application/json;odata=nometadata")
                .header("content-type", "application/json")
                .header("prefer", "return-no-content")
        };
        let name = serde_json::json!({ "TableName": table.name });
        self.plan.steps.push(Step {
            place: self.place(at),
            what: format!("table {:?}", table.name),
            asks: Ask::Request(call("GET", &format!("/{}", table_path(&table.name)))),
            makes: vec![call("POST", "/Tables").content(bytes(name.to_string()))],
        });
        for spanned in &table.entities {
            let at = spanned.span();
            let read = entity::read(spanned.get_ref());
            let new = read.map_err(|what| self.invalid(&at, what))?;
            let path = entity_path(&table.name, &new.partition_key, &new.row_key);
            let content = bytes(new.document.to_string());
            let keys = (&new.partition_key, &new.row_key);
            self.plan.steps.push(Step {
                place: self.place(&at),
                what: format!("entity {keys:?} of table {:?}", table.name),
                asks: Ask::Request(call("GET", &format!("/{path}"))),
                makes: vec![call("POST", &format!("/{}", table.name)).content(content)],
            });
        }
        Ok(())
    }

    fn service(&mut self, seed: &ServiceSeed, at: &Range<usize>) -> Result<(), SeedError> {
        let account = self.account(seed.account.as_ref(), at)?;
        let service = match seed.name {
            ServiceName::Blob => Service::Blob,
            ServiceName::Queue => Service::Queue,
            ServiceName::Table => Service::Table,
        };
        let target = "/?restype=service&comp=properties";
        let make = Call::new(&account, service, "PUT", target);
        self.plan.steps.push(Step {
            place: self.place(at),
            what: format!("properties of service {}", service.as_str()),
            asks: Ask::Properties(account, service),
            makes: vec![make.content(bytes(properties(seed)))],
        });
        Ok(())
    }

    fn account(&self, named: Option<&String>, at: &Range<usize>) -> Result<String, SeedError> {
        match named {
            None => Ok(self.account.clone()),
            Some(name) if self.accounts.contains_key(name) => Ok(name.clone()),
            Some(name) => {
                let known: Vec<_> = self.accounts.keys().map(String::as_str).collect();
                let known = known.join(", ");
                let what = format!("account: unknown account {name:?}; the accounts are {known}");
                Err(self.invalid(at, what))
            }
        }
    }

    fn beside(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    fn place(&self, at: &Range<usize>) -> Place {
        let before = self.ends.partition_point(|end| *end < at.start);
        Place {
            file: self.path.to_owned(),
            line: Some(1 + before),
        }
    }

    fn invalid(&self, at: &Range<usize>, what: String) -> SeedError {
        SeedError::Invalid {
            place: self.place(at),
            what,
        }
    }

    fn field(&self, at: &Range<usize>) -> String {
        let before = self.text.get(..at.start).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        match line.split_once('=') {
            Some((field, _)) => format!("{}: ", field.trim()),
            None => String::new(),
        }
    }
}

fn metadata(pairs: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let headers = pairs
        .iter()
        .map(|(name, value)| (format!("x-ms-meta-{name}"), value.clone()));
    headers.collect()
}

fn tags(pairs: &BTreeMap<String, String>) -> Option<String> {
    let tags = pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    (!pairs.is_empty()).then(|| uri::write_query(tags))
}

/// Writes the document of Set Service Properties.
fn properties(seed: &ServiceSeed) -> Vec<u8> {
    let mut document = XmlWriter::new();
    document.open("StorageServiceProperties");
    let rules: Vec<CorsRule> = seed.cors.iter().map(Cors::rule).collect();
    push_cors(&mut document, &rules);
    if let Some(version) = &seed.default_version {
        document.element("DefaultServiceVersion", version);
    }
    if let Some(days) = seed.delete_retention_days {
        document.open("DeleteRetentionPolicy");
        document.element("Enabled", "true");
        document.element("Days", &days.to_string());
        document.close("DeleteRetentionPolicy");
    }
    document.close("StorageServiceProperties");
    document.finish()
}
