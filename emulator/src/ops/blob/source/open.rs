//! Opens a source before the commit: authorises the read, and reads its bytes.
//!
//! Sources: "Copy Blob", "Put Block From URL"; recordings. The source is read as Get Blob reads it,
//! with an identity of its own.

use http::Method;
use http::header::AUTHORIZATION;
use smalt_protocol::{ApiVersion, ErrorCode, StorageError};

use super::{
    Origin, Request, Source, SourceBytes, SourceUrl, UNVERIFIED, Wanted, nowhere, refused, remote,
    unverified,
};
use crate::auth::{self, CopyReader, Identity};
use crate::body::{self, Body};
use crate::call::Call;
use crate::core::Core;
use crate::faults::Hold;
use crate::ops::blob::content::{self, Located};
use crate::ops::blob::guard;
use crate::ops::dfs::gate::Gate;
use crate::ops::lookup::{BlobAddress, Found};
use crate::records::BlobKind;
use crate::register::READ_BLOB;
use crate::reply::Content;
use crate::rules::conditions::Conditions;
use crate::rules::encryption::Requested;
use crate::stage;
use crate::store::View;
use crate::target::Target;

/// Since this version, the error says that a condition on the source of a range is unmet. Recorded:
/// not in 2019-02-02.
const TELLS_CONDITIONS: ApiVersion = ApiVersion::V2019_07_07;
/// Since this version, a caller that may read the account may use its blobs as sources of bytes,
/// too. The tests of Microsoft's SDK for Rust do so in production; recorded: not up to 2021-12-02.
const TRUSTS_CALLER: ApiVersion = ApiVersion::V2026_04_06;
/// Since this version, an unauthorised source is refused with a challenge, as a direct read is
/// since 2019-12-12. Recorded: that version answers that there is no such source.
const CHALLENGES: ApiVersion = ApiVersion::V2020_02_10;
/// Since this version, a source may be in another account. "Version 2012-02-12".
const CROSSES_ACCOUNTS: ApiVersion = ApiVersion::V2012_02_12;

/// Authorises the read of a source, and reads the requested bytes.
///
/// # Errors
/// `CannotVerifyCopySource` with the status of the rejection, 400 `InvalidHeaderValue` for a URL
/// that is not a blob's.
pub async fn open(core: &Core, call: &Call, asked: Request) -> Result<Source, StorageError> {
    let is_reference = matches!(asked.wanted, Wanted::Reference);
    opened(core, call, asked).await.map_err(|error| {
        if tells_why(call, is_reference, error.status()) {
            error
        } else {
            error.with_message(UNVERIFIED)
        }
    })
}

/// Whether the error says why the source was rejected. Recorded: Copy Blob does not give the reason
/// of a 401; Append Block and Put Page From URL not that of a 412, nor, to judge by the number of
/// recorded responses, that of a 401.
fn tells_why(call: &Call, is_reference: bool, status: u16) -> bool {
    let comp = call.query("comp").unwrap_or_default();
    let is_of_range = ["appendblock", "page"]
        .iter()
        .any(|name| comp.eq_ignore_ascii_case(name));
    match status {
        401 => !is_reference && !is_of_range,
        412 => !is_of_range,
        _ => true,
    }
}

async fn opened(core: &Core, call: &Call, asked: Request) -> Result<Source, StorageError> {
    let key = Requested::of_source(&call.headers)?;
    let Some(target) = asked.url.resolve(call, &core.config)? else {
        if asked.url.is_of_host_of(call) {
            return Err(nowhere());
        }
        return remote::open(core, call, asked).await;
    };
    let is_reference = matches!(asked.wanted, Wanted::Reference);
    if call.version < CROSSES_ACCOUNTS && target.account != call.account() {
        return Err(ErrorCode::CopyAcrossAccountsNotSupported.into());
    }
    // A signature in the URL decides what may be read, whoever sends it.
    let reader = auth::reader(call, target.resource.parent());
    let is_trusted = reader != CopyReader::Stranger
        && target.account == call.account()
        && !asked.url.is_signed();
    let is_own = is_reference && is_trusted;
    let is_trusted = is_own || (is_trusted && call.version >= TRUSTS_CALLER);
    let read = read_call(core, call, target, &asked.url);
    let identity = if is_trusted {
        Identity::Owner
    } else {
        stranger(core, &read)?
    };
    // A condition on tags reads them, for a source as for any blob.
    if call.headers.contains_key("x-ms-source-if-tags") && !identity.may('t') {
        return Err(refused(&ErrorCode::AuthorizationPermissionMismatch.into()));
    }
    let told = |error| if is_own { error } else { refused(&error) };
    let address = BlobAddress::of(&read).map_err(told)?;
    if is_trusted && reader == CopyReader::Listed {
        check_lists(core, call, &address).map_err(told)?;
    }
    let bytes = match asked.wanted {
        Wanted::Reference => None,
        Wanted::Whole { conditions, most } => {
            Some(whole(core, &address, &conditions, &key, most).await?)
        }
        Wanted::Range {
            conditions,
            range,
            most,
        } => {
            let part = locate(core, &address, &conditions, &key, |found| {
                let length = found.blob.length;
                let (first, length) = match range {
                    Some(range) => range.within(length)?,
                    None => (0, length),
                };
                check_length(length, most)?;
                Ok(first..first + length)
            });
            let part = part.map_err(|error| untold(error, call.version))?;
            Some(staged(core, part).await?)
        }
    };
    Ok(Source {
        origin: Origin::Here(address),
        shown: asked.url.shown(&call.origin),
        is_own,
        may_read_tags: identity.may('t'),
        hold: is_reference.then(|| hold(core, call)).flatten(),
        bytes,
    })
}

/// Checks that access control lists permit the caller to read the source.
fn check_lists(core: &Core, call: &Call, source: &BlobAddress) -> Result<(), StorageError> {
    let Some(gate) = Gate::of_source(call, &source.name) else {
        return Ok(());
    };
    let now = core.store.now();
    core.store.read(|view: &dyn View| gate.check(view, now))
}

/// Returns the rule's hold on this copy, if there is one.
pub(super) fn hold(core: &Core, call: &Call) -> Option<Hold> {
    core.faults.hold(call.operation, call)
}

/// Returns the read of the source as a call of its own.
fn read_call(core: &Core, call: &Call, target: Target, url: &SourceUrl) -> Call {
    let settings = core.settings(&target.account);
    let mut read = call.within(Method::GET, target, url.query().to_vec(), settings);
    if let Some(authorization) = call.headers.get("x-ms-copy-source-authorization") {
        read.headers.insert(AUTHORIZATION, authorization.clone());
    }
    // The caller sent the source's signature: from its address, over its connection.
    read.secure &= url.is_secure();
    read
}

/// Authorises by the credentials in the URL alone.
fn stranger(core: &Core, read: &Call) -> Result<Identity, StorageError> {
    auth::authorise(core, read, &READ_BLOB).map_err(|error| match error.code() {
        ErrorCode::NoAuthenticationInformation if read.version < CHALLENGES => {
            refused(&ErrorCode::ResourceNotFound.into())
        }
        _ => refused(&error),
    })
}

/// Recorded: early versions do not say which condition on the source of a range was unmet.
fn untold(error: StorageError, version: ApiVersion) -> StorageError {
    if version < TELLS_CONDITIONS && error.status() == 412 {
        unverified(412)
    } else {
        error
    }
}

/// A range of a source, located in one view.
struct Part {
    found: Found,
    located: Located,
}

fn locate(
    core: &Core,
    address: &BlobAddress,
    conditions: &Conditions,
    key: &Requested,
    range: impl FnOnce(&Found) -> Result<std::ops::Range<u64>, StorageError>,
) -> Result<Part, StorageError> {
    let now = core.store.now();
    let find = |view: &dyn View| {
        let found = address.find(view, now)?;
        conditions.check_read((&found.blob).into())?;
        guard::check_online(&found.blob)?;
        key.check_read(found.blob.encryption.as_ref())?;
        let range = range(&found)?;
        let located = content::locate(view, found.blob.content, range)?;
        Ok(Part { found, located })
    };
    core.store
        .read(find)
        .map_err(|error: StorageError| refused(&error))
}

/// Reads the whole source. The content of a block blob is shared; the bytes of another kind become
/// a payload.
async fn whole(
    core: &Core,
    address: &BlobAddress,
    conditions: &Conditions,
    key: &Requested,
    most: u64,
) -> Result<SourceBytes, StorageError> {
    let part = locate(core, address, conditions, key, |found| {
        check_length(found.blob.length, most)?;
        Ok(0..found.blob.length)
    })?;
    if part.found.blob.kind != BlobKind::Block {
        return staged(core, part).await;
    }
    let mut body = stream(part.located.into_content(&core.store));
    let (md5, crc64) = stage::hashes(&mut body).await?;
    Ok(SourceBytes {
        etag: part.found.blob.etag,
        md5: Some(md5),
        crc64,
        staged: None,
    })
}

async fn staged(core: &Core, part: Part) -> Result<SourceBytes, StorageError> {
    let length = part.located.length();
    let mut body = stream(part.located.into_content(&core.store));
    let received = stage::payload(&core.store, &mut body, length, true).await?;
    Ok(SourceBytes {
        etag: part.found.blob.etag,
        md5: received.md5,
        crc64: received.crc64,
        staged: Some(received.staged),
    })
}

/// Rejects a source, or a range of one, that is too long.
pub(super) fn check_length(length: u64, most: u64) -> Result<(), StorageError> {
    if length <= most {
        return Ok(());
    }
    let mib = most / smalt_protocol::limits::MIB;
    Err(StorageError::new(ErrorCode::CannotVerifyCopySource)
        .with_status(409)
        .with_message(format!(
            "The source request body for copy source is too large and exceeds the maximum \
             permissible limit ({mib}MB)."
        )))
}

fn stream(content: Content) -> Body {
    match content {
        Content::Empty | Content::Length(_) => body::empty(),
        Content::Bytes(bytes) => body::full(bytes),
        Content::Payload(reader) => body::payload(reader),
        Content::Stream { body, .. } | Content::Chunked(body) => body,
    }
}
