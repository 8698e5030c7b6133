//! Properties of a container in responses and listings, by version.
//!
//! Sources: "Get Container Properties", "List Containers"; recordings.

use smalt_protocol::ApiVersion;

use crate::call::Call;
use crate::records::{ContainerRecord, PublicAccess};
use crate::reply::Reply;
use crate::rules::conditions::Current;
use crate::rules::encryption::ACCOUNT_SCOPE;

/// Since this version, public access is shown. "Get Container Properties".
const SHOWS_PUBLIC_ACCESS: ApiVersion = ApiVersion::V2016_05_31;
/// Since this version, immutability policy and legal hold are shown. Same page.
const SHOWS_IMMUTABILITY: ApiVersion = ApiVersion::V2017_11_09;
/// Since this version, encryption scopes are shown, as recorded.
const SHOWS_ENCRYPTION_SCOPE: ApiVersion = ApiVersion::V2019_02_02;
/// Since this version, version-level immutability is shown; recorded for 2021-12-02.
const SHOWS_IMMUTABLE_VERSIONS: ApiVersion = ApiVersion::V2020_06_12;

/// The properties that a version shows besides ETag, last-modified time and lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerHeaders<'a> {
    /// Public access; `None` for private containers.
    pub public_access: Option<&'static str>,
    /// Default encryption scope, and whether other scopes are forbidden.
    pub encryption_scope: Option<(&'a str, bool)>,
    /// Immutability policy and legal hold of the container itself, which are always false.
    pub immutability: Option<(bool, bool)>,
    /// Whether the container has version-level immutability.
    pub immutable_with_versioning: Option<bool>,
}

impl<'a> ContainerHeaders<'a> {
    /// Returns the properties that the version of a call shows.
    pub fn of(container: &'a ContainerRecord, call: &Call) -> Self {
        let since = |first| call.version >= first;
        let scope = container.encryption_scope.as_ref();
        let scope = scope.map_or((ACCOUNT_SCOPE, false), |(name, deny)| {
            (name.as_str(), *deny)
        });
        let shown = container.public_access.header();
        ContainerHeaders {
            public_access: shown.filter(|_| since(SHOWS_PUBLIC_ACCESS)),
            encryption_scope: since(SHOWS_ENCRYPTION_SCOPE).then_some(scope),
            immutability: since(SHOWS_IMMUTABILITY).then_some((
                container.worm.immutability_policy.is_some(),
                !container.worm.legal_hold.is_empty(),
            )),
            immutable_with_versioning: since(SHOWS_IMMUTABLE_VERSIONS)
                .then_some(call.settings.version_immutability),
        }
    }

    /// Adds the properties as headers.
    pub fn headers(self, reply: Reply) -> Reply {
        let text = |flag: bool| if flag { "true" } else { "false" };
        let (scope, deny) = self.encryption_scope.unzip();
        let (policy, hold) = self.immutability.unzip();
        reply
            .maybe("x-ms-blob-public-access", self.public_access)
            .maybe("x-ms-default-encryption-scope", scope)
            .maybe("x-ms-deny-encryption-scope-override", deny.map(text))
            .maybe("x-ms-has-immutability-policy", policy.map(text))
            .maybe("x-ms-has-legal-hold", hold.map(text))
            .maybe(
                "x-ms-immutable-storage-with-versioning-enabled",
                self.immutable_with_versioning.map(text),
            )
    }
}

impl<'a> From<&'a ContainerRecord> for Current<'a> {
    fn from(container: &'a ContainerRecord) -> Self {
        Current {
            etag: container.etag,
            last_modified: container.last_modified,
            tags: &[],
        }
    }
}

impl PublicAccess {
    /// Returns the name on the wire; `None` for private.
    pub const fn header(self) -> Option<&'static str> {
        match self {
            PublicAccess::Private => None,
            PublicAccess::Blob => Some("blob"),
            PublicAccess::Container => Some("container"),
        }
    }
}
