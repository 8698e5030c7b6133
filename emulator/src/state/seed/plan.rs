//! The steps of a seed, each with a request that checks for a resource and requests that create it.

use std::path::PathBuf;

use bytes::Bytes;
use smalt_protocol::Service;
use smalt_protocol::uri::encode_path;

use super::call::{Call, Content};
use super::{Place, SeedError};
use crate::disk::{Disk, SystemDisk};
use crate::emulator::Emulator;
use crate::keys;

/// Size of one append or page write in bytes: the smallest maximum of all versions.
const PIECE_BYTES: u64 = 4 * 1024 * 1024;

/// All steps in order; containers come before their contents.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
}

/// A resource that must exist.
pub(super) struct Step {
    pub(super) place: Place,
    /// Description for errors: `container "photos"`.
    pub(super) what: String,
    pub(super) asks: Ask,
    pub(super) makes: Vec<Call>,
}

/// How to check whether the resource exists.
pub(super) enum Ask {
    /// It exists if this request succeeds.
    Request(Call),
    /// It exists if the properties of this account's service were set.
    Properties(String, Service),
}

pub(super) struct NewBlob<'a> {
    pub(super) account: &'a str,
    pub(super) container: &'a str,
    pub(super) name: &'a str,
    pub(super) kind: Kind,
    pub(super) content: Content,
    /// Headers of the request that creates it.
    pub(super) headers: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    #[default]
    Block,
    Append,
    Page,
}

impl Step {
    pub(super) async fn is_there(&self, emulator: &Emulator) -> Result<bool, SeedError> {
        match &self.asks {
            Ask::Request(call) => {
                let answer = call.send(emulator, &SystemDisk).await?;
                Ok(answer.status.is_success())
            }
            Ask::Properties(account, service) => {
                let key = keys::service(account, service.as_str());
                let store = &emulator.core().store;
                Ok(store.read(|view| view.get(&key))?.is_some())
            }
        }
    }

    pub(super) async fn make(&self, emulator: &Emulator, disk: &dyn Disk) -> Result<(), SeedError> {
        for call in &self.makes {
            let answer = call.send(emulator, disk).await?;
            if !answer.status.is_success() {
                return Err(SeedError::Refused {
                    place: self.place.clone(),
                    what: self.what.clone(),
                    status: answer.status,
                    code: answer.error,
                });
            }
        }
        Ok(())
    }
}

impl Plan {
    pub(super) fn container(
        &mut self,
        place: Place,
        account: &str,
        name: &str,
        headers: Vec<(String, String)>,
    ) {
        let target = format!("/{}?restype=container", encode_path(name));
        let mut make = Call::new(account, Service::Blob, "PUT", &target);
        make.headers = headers;
        self.steps.push(Step {
            place,
            what: format!("container {name:?}"),
            asks: Ask::Request(Call::new(account, Service::Blob, "GET", &target)),
            makes: vec![make],
        });
    }

    pub(super) fn blob(&mut self, place: Place, blob: NewBlob<'_>) {
        let target = format!(
            "/{}/{}",
            encode_path(blob.container),
            encode_path(blob.name)
        );
        let call = |method, target: &str| Call::new(blob.account, Service::Blob, method, target);
        let asks = Ask::Request(call("HEAD", &target));
        let mut make = call("PUT", &target);
        make.headers.clone_from(&blob.headers);
        let length = blob.content.len();
        let parts = (0..length.div_ceil(PIECE_BYTES)).map(|part| {
            let start = part * PIECE_BYTES;
            (start, length.min(start + PIECE_BYTES))
        });
        let makes = match blob.kind {
            Kind::Block => {
                let make = make.header("x-ms-blob-type", "BlockBlob");
                vec![make.content(blob.content)]
            }
            Kind::Append => {
                let append = |(start, end)| {
                    let call = call("PUT", &format!("{target}?comp=appendblock"));
                    call.content(blob.content.part(start, end))
                };
                let make = make.header("x-ms-blob-type", "AppendBlob");
                std::iter::once(make).chain(parts.map(append)).collect()
            }
            Kind::Page => {
                let write = |(start, end): (u64, u64)| {
                    let call = call("PUT", &format!("{target}?comp=page"));
                    call.header("x-ms-page-write", "update")
                        .header("x-ms-range", format!("bytes={start}-{}", end - 1))
                        .content(blob.content.part(start, end))
                };
                let make = make
                    .header("x-ms-blob-type", "PageBlob")
                    .header("x-ms-blob-content-length", length.to_string());
                std::iter::once(make).chain(parts.map(write)).collect()
            }
        };
        self.steps.push(Step {
            place,
            what: format!("blob {:?} of container {:?}", blob.name, blob.container),
            asks,
            makes,
        });
    }
}

/// Returns the file as the content of a blob. Fails if it does not exist.
pub(super) fn file(disk: &dyn Disk, path: PathBuf) -> Result<Content, SeedError> {
    let length = disk.open_to_read(&path).and_then(|file| file.len());
    match length {
        Ok(length) => Ok(Content::File {
            path,
            offset: 0,
            length,
        }),
        Err(error) => Err(SeedError::Io { file: path, error }),
    }
}

/// Guesses the content type from the extension of the blob's name.
pub(super) fn content_type(name: &str) -> Option<&'static str> {
    mime_guess::from_path(name).first_raw()
}

pub(super) fn bytes(bytes: impl Into<Bytes>) -> Content {
    Content::Bytes(bytes.into())
}
