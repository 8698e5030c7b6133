//! The owner of the data, who puts blobs and changes them while the workers run.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use smalt_protocol::ApiVersion;
use smalt_protocol::uri::percent_decode;
use smalt_sleeve::port::{
    BlobId, CallContext, Conditions, DeleteSnapshots, Metadata, PortResult, PutBlob, Storage,
};

use super::extras::TAG;
use super::model;
use super::plan::{self, CONTENT_BYTES, Dead, Deed, Life, Names, SweepPlan};
use crate::scenario::actor::Actor;
use crate::scenario::world::{Which, World};
use crate::wire::access::Access;

/// Header that says of a blob that it is a directory.
const DIRECTORY: &str = "x-ms-meta-hdi_isfolder";
/// Service version of the owner's own requests.
const VERSION: ApiVersion = ApiVersion::V2021_12_02;

/// The owner of the data, and of the blobs in the account for dead blobs.
#[derive(Clone)]
pub(super) struct Owner {
    main: Arc<dyn Storage>,
    dead: Arc<dyn Storage>,
    plan: Arc<SweepPlan>,
    names: Names,
    world: World,
}

impl Owner {
    pub(super) fn new(world: &World, plan: &SweepPlan, names: &Names) -> Result<Self, String> {
        let actor = Actor::owner();
        Ok(Owner {
            main: world.storage(Which::Main, &actor, plan.seed)?,
            dead: world.storage(Which::Dead, &actor, plan.seed)?,
            plan: Arc::new(plan.clone()),
            names: names.clone(),
            world: world.clone(),
        })
    }

    fn storage(&self, which: Which) -> &Arc<dyn Storage> {
        match which {
            Which::Main => &self.main,
            Which::Dead => &self.dead,
        }
    }

    pub(super) async fn put_all(&self) -> Result<(), String> {
        let cx = CallContext::default();
        for (number, (which, container, _)) in plan::SWEPT.into_iter().enumerate() {
            if number == plan::MEDIA && self.plan.media_is_missing {
                continue;
            }
            let container = self.names.container(container);
            let made = self.storage(which).create_container(&cx, &container).await;
            made.map_err(|error| error.to_string())?;
        }
        for number in 0..self.plan.blobs.len() {
            let blob = &self.plan.blobs[number];
            let put = self.put(number, blob.life, blob.dead, 0).await;
            put.map_err(|error| error.to_string())?;
            self.dress(number).await;
        }
        if self.plan.extras.hierarchical {
            self.date_directories().await;
        }
        Ok(())
    }

    /// Makes every directory above a blob of the main account due.
    async fn date_directories(&self) {
        let mut directories = BTreeSet::new();
        for number in 0..self.plan.blobs.len() {
            let (which, blob) = self.id(number);
            let above = blob.name.match_indices('/');
            let above = above.filter(|_| which == Which::Main);
            let above = above.map(|(end, _)| BlobId::new(&blob.container, &blob.name[..end]));
            directories.extend(above);
        }
        let due = Life::Past.text(self.world.wire.now(), self.plan.every_s());
        let marked = [
            ("x-ms-meta-timetolive", due.as_deref().unwrap_or_default()),
            (DIRECTORY, "true"),
        ];
        for directory in &directories {
            let path = format!("{}?comp=metadata", path_of(directory));
            self.send(Method::PUT, &path, &marked, Bytes::new()).await;
        }
    }

    /// Gives a new blob the tag of the rule, or takes its MD5, where the plan says so.
    async fn dress(&self, number: usize) {
        let (which, blob) = self.id(number);
        if which != Which::Main {
            return;
        }
        if self.plan.extras.rule_h.is_some() && number % 3 != 1 {
            self.retag(&blob, true).await;
        }
        if self.plan.extras.without_md5 && number.is_multiple_of(2) {
            // Setting the properties removes those that are not given.
            let path = format!("{}?comp=properties", path_of(&blob));
            self.send(Method::PUT, &path, &[], Bytes::new()).await;
        }
    }

    async fn retag(&self, blob: &BlobId, on: bool) {
        let value = if on { TAG.1 } else { "kept" };
        let tag = format!("<Tag><Key>{}</Key><Value>{value}</Value></Tag>", TAG.0);
        let body = Bytes::from(format!("<Tags><TagSet>{tag}</TagSet></Tags>"));
        let path = format!("{}?comp=tags", path_of(blob));
        let xml = [("content-type", "application/xml")];
        self.send(Method::PUT, &path, &xml, body).await;
    }

    fn id(&self, number: usize) -> (Which, BlobId) {
        let (which, container, _) = plan::SWEPT[self.plan.container(number)];
        let name = self.plan.blob_name(number);
        (which, BlobId::new(self.names.container(container), name))
    }

    fn metadata(&self, life: Life, dead: Dead, own: &str) -> Metadata {
        let (now, every_s) = (self.world.wire.now(), self.plan.every_s());
        let mut metadata = Metadata::new();
        metadata.insert("owner".to_owned(), "scenario".to_owned());
        metadata.extend(
            life.text(now, every_s)
                .map(|text| ("TimeToLive".to_owned(), text)),
        );
        let dead = dead.text(&self.names, own);
        metadata.extend(dead.map(|text| ("DeadBlobContainer".to_owned(), text)));
        metadata
    }

    async fn put(&self, number: usize, life: Life, dead: Dead, version: u8) -> PortResult<()> {
        let (which, blob) = self.id(number);
        let put = PutBlob {
            metadata: self.metadata(life, dead, &blob.container),
            ..PutBlob::default()
        };
        let content = content(&format!("{number}#{version}"));
        let cx = CallContext::default();
        let put = self.storage(which).put_blob(&cx, &blob, content, &put);
        put.await.map(|_| ())
    }

    /// Returns the number of the blob with this path.
    fn number_of(&self, path: &str) -> Option<usize> {
        let path = percent_decode(path).ok()?;
        (0..self.plan.blobs.len()).find(|number| {
            let (which, blob) = self.id(*number);
            path == format!(
                "/{}/{}/{}",
                self.world.name(which),
                blob.container,
                blob.name
            )
        })
    }

    /// Performs the planned act of this number on the blob of this path, or on the blob that the
    /// plan names. It ignores errors: an earlier act may have leased or removed the blob.
    pub(super) async fn act(&self, number: u8, about: Option<String>) {
        let acts = &self.plan.acts;
        let Some(act) = acts.get(usize::from(number) % acts.len().max(1)) else {
            return;
        };
        let target = about.and_then(|path| self.number_of(&path));
        let target = target.unwrap_or(usize::from(act.blob) % self.plan.blobs.len().max(1));
        let (which, blob) = self.id(target);
        let (cx, storage) = (CallContext::default(), self.storage(which));
        let none = Conditions::default();
        match act.deed {
            Deed::Overwrite(life, dead) => {
                let _ = self.put(target, life, dead, number + 1).await;
            }
            Deed::Tag(life, dead) => {
                let metadata = self.metadata(life, dead, &blob.container);
                let _ = storage
                    .set_blob_metadata(&cx, &blob, &metadata, &none)
                    .await;
            }
            Deed::Lease(seconds) => {
                let id = "11111111-2222-3333-4444-555555555555";
                let _ = storage.acquire_lease(&cx, &blob, id, seconds).await;
            }
            Deed::Delete => {
                let _ = storage
                    .delete_blob(&cx, &blob, &none, DeleteSnapshots::Refuse)
                    .await;
            }
            Deed::TakeDestination => self.take_destination(target).await,
            Deed::SpoilDestination => self.spoil_destination(target).await,
            Deed::Snapshot if which == Which::Main => {
                let path = format!("{}?comp=snapshot", path_of(&blob));
                self.send(Method::PUT, &path, &[], Bytes::new()).await;
            }
            Deed::Retag(on) if which == Which::Main => self.retag(&blob, on).await,
            Deed::Snapshot | Deed::Retag(_) => {}
            Deed::BreakLease => {
                let path = format!("{}/TimeToLiveBlobs?comp=lease", self.names.state());
                let now = [
                    ("x-ms-lease-action", "break"),
                    ("x-ms-lease-break-period", "0"),
                ];
                self.send(Method::PUT, &path, &now, Bytes::new()).await;
            }
            Deed::DropDead => {
                let path = format!("{}?restype=container", self.names.container(plan::DEAD));
                self.send(Method::DELETE, &path, &[], Bytes::new()).await;
            }
        }
    }

    /// Returns the destination of a blob when it is dead.
    fn destination(&self, target: usize) -> Option<(Arc<dyn Storage>, BlobId)> {
        let (_, blob) = self.id(target);
        let dead = self.plan.blobs[target].dead;
        let dead = dead.text(&self.names, &blob.container)?;
        let (container, name) = model::resolve(&dead, &blob.name)?;
        let account = self.storage(self.plan.dead_account?);
        Some((Arc::clone(account), BlobId::new(container, name)))
    }

    /// Puts a blob of the owner's at the destination of a dead one.
    async fn take_destination(&self, target: usize) {
        let Some((account, blob)) = self.destination(target) else {
            return;
        };
        let cx = CallContext::default();
        let _ = account.create_container(&cx, &blob.container).await;
        let put = PutBlob::default();
        let _ = account.put_blob(&cx, &blob, content("foreign"), &put).await;
    }

    /// Truncates the blob at the destination of a dead one.
    async fn spoil_destination(&self, target: usize) {
        let Some((account, blob)) = self.destination(target) else {
            return;
        };
        let cx = CallContext::default();
        let Ok((there, _)) = account.blob_properties(&cx, &blob).await else {
            return;
        };
        let put = PutBlob {
            metadata: there.metadata,
            ..PutBlob::default()
        };
        let short = Bytes::from_static(b"cut");
        let _ = account.put_blob(&cx, &blob, short, &put).await;
    }

    /// Sends a request to the main account for which the client has no method.
    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Bytes) {
        let access = Access::full(VERSION);
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://127.0.0.1:10000{}", access.path(path)))
            .header("x-ms-version", VERSION.to_string())
            .header("content-length", body.len().to_string());
        let with = |request: http::request::Builder, (name, value): &(&str, &str)| {
            request.header(*name, *value)
        };
        let request = headers.iter().fold(request, with);
        if let Ok(request) = request.body(body) {
            // Errors are expected.
            let _ = self.world.wire.owner_sends(request).await;
        }
    }
}

/// Returns the path of a blob in its account, encoded.
fn path_of(blob: &BlobId) -> String {
    format!("{}/{}", blob.container, blob.name.replace(' ', "%20"))
}

/// Returns a content of [`CONTENT_BYTES`] that begins with `text`.
fn content(text: &str) -> Bytes {
    let width = usize::try_from(CONTENT_BYTES).unwrap_or(usize::MAX);
    Bytes::from(format!("{text:<width$}"))
}
