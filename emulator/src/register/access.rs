//! The credentials and permissions that each operation requires.
//!
//! Sources: the tables of "Create an account SAS" and "Create a service SAS", and the anonymous
//! access table of "Set Container ACL".

use smalt_protocol::ApiVersion;

use crate::call::Call;

/// Permission letter for a special Delete Blob: `y` for a permanent deletion, `x` for a version.
pub fn deletion(call: &Call) -> Option<&'static str> {
    let names = |parameter| call.query(parameter).is_some_and(|value| !value.is_empty());
    if names("deletetype") {
        Some("y")
    } else {
        names("versionid").then_some("x")
    }
}

/// Permission letter for Lease Blob and Lease Container, action `break`: since 2017-07-29 `d`
/// permits it too, before that only `w`.
pub fn lease_breaking(call: &Call) -> Option<&'static str> {
    (call.version < ApiVersion::V2017_07_29).then_some("w")
}

/// Whether a request sets the owner or the owning group of a path.
pub fn sets_owner(call: &Call) -> bool {
    let has = |name: &str| call.headers.contains_key(name);
    has("x-ms-owner") || has("x-ms-group")
}

/// Permission letter for setAccessControl of an owner or a group alone. "Create a service SAS": `o`
/// sets them, `p` sets permissions and lists.
pub fn ownership(call: &Call) -> Option<&'static str> {
    let has = |name: &str| call.headers.contains_key(name);
    let sets_rights = has("x-ms-permissions") || has("x-ms-acl");
    (sets_owner(call) && !sets_rights).then_some("o")
}

/// Resource type of an account SAS (`srt`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `s`: the service itself.
    Service,
    /// `c`: containers, queues, tables.
    Container,
    /// `o`: blobs, messages, entities.
    Object,
}

impl Scope {
    /// Returns its letter in `srt`.
    pub const fn letter(self) -> char {
        match self {
            Scope::Service => 's',
            Scope::Container => 'c',
            Scope::Object => 'o',
        }
    }
}

/// The lowest level of public access at which an operation needs no credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// Credentials are always required.
    No,
    /// Public access to blobs or to the container.
    Blob,
    /// Public access to the container.
    Container,
    /// No credentials are ever required: a CORS preflight carries none.
    Always,
}

/// The access that an operation requires: the account key, or a SAS with any one of the given
/// letters.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Resource type that an account SAS must include.
    pub scope: Scope,
    /// Whether an account SAS of any resource type is accepted.
    pub any_scope: bool,
    /// Permission letters of an account SAS, any one of which is enough; empty if no account SAS is
    /// accepted.
    pub account_sas: &'static str,
    /// Permission letters of a service SAS, any one of which is enough; empty if no service SAS is
    /// accepted.
    pub service_sas: &'static str,
    /// Returns the letters for special requests, which replace those above.
    pub refined: Option<fn(&Call) -> Option<&'static str>>,
    /// Whether only a bearer token is accepted.
    pub token_only: bool,
    /// When the operation is open to anonymous callers.
    pub anonymous: Anonymous,
}

impl Access {
    /// Requires an account SAS with any of these letters for the service; no service SAS is
    /// accepted.
    pub const fn service(account_sas: &'static str) -> Self {
        Access {
            scope: Scope::Service,
            any_scope: false,
            account_sas,
            service_sas: "",
            refined: None,
            token_only: false,
            anonymous: Anonymous::No,
        }
    }

    /// Requires an account SAS with any of these letters for containers; no service SAS is
    /// accepted.
    pub const fn container(account_sas: &'static str) -> Self {
        Access {
            scope: Scope::Container,
            ..Self::service(account_sas)
        }
    }

    /// Requires an account or service SAS with any of these letters for objects.
    pub const fn object(letters: &'static str) -> Self {
        Access {
            scope: Scope::Object,
            service_sas: letters,
            ..Self::service(letters)
        }
    }

    /// Requires the account key; no SAS is accepted.
    pub const fn owner() -> Self {
        Self::container("")
    }

    /// Requires a bearer token; neither account key nor SAS is accepted.
    pub const fn token() -> Self {
        Access {
            token_only: true,
            ..Self::service("")
        }
    }

    /// Returns `true` if no SAS is accepted and a bearer token is not required.
    pub const fn is_owners(&self) -> bool {
        self.account_sas.is_empty() && self.service_sas.is_empty() && !self.token_only
    }

    /// Sets the function that returns the letters for special requests.
    #[must_use]
    pub const fn refined(mut self, refine: fn(&Call) -> Option<&'static str>) -> Self {
        self.refined = Some(refine);
        self
    }

    /// Accepts an account SAS of any resource type: for a batch, whose parts are checked one by
    /// one, and for account information.
    #[must_use]
    pub const fn with_any_scope(mut self) -> Self {
        self.any_scope = true;
        self
    }

    /// Sets the letters of a service SAS.
    #[must_use]
    pub const fn with_service_sas(mut self, letters: &'static str) -> Self {
        self.service_sas = letters;
        self
    }

    /// Opens the operation to anonymous callers at this level of public access.
    #[must_use]
    pub const fn public(mut self, anonymous: Anonymous) -> Self {
        self.anonymous = anonymous;
        self
    }
}

/// Access for reading a blob, which a copy also requires for its source.
pub const READ_BLOB: Access = Access::object("r").public(Anonymous::Blob);
