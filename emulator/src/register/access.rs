//! What a caller must hold for an operation.
//!
//! Sources: the tables of "Create an account SAS" and "Create a service SAS", and the anonymous
//! access table of "Set Container ACL".

use smalt_protocol::ApiVersion;

use crate::call::Call;

/// Delete Blob: a version needs `x`, what is to be gone for good `y`.
pub fn deletion(call: &Call) -> Option<&'static str> {
    let names = |parameter| call.query(parameter).is_some_and(|value| !value.is_empty());
    if names("deletetype") {
        Some("y")
    } else {
        names("versionid").then_some("x")
    }
}

/// Lease Blob and Lease Container, action `break`: `d` permits it since 2017-07-29.
pub fn lease_breaking(call: &Call) -> Option<&'static str> {
    (call.version < ApiVersion::V2017_07_29).then_some("w")
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
    /// The letter that stands for it in `srt`.
    pub const fn letter(self) -> char {
        match self {
            Scope::Service => 's',
            Scope::Container => 'c',
            Scope::Object => 'o',
        }
    }
}

/// Least level of public access that lets anybody do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// Never.
    No,
    /// With public access to blobs or to the container.
    Blob,
    /// With public access to the container only.
    Container,
    /// Always: CORS preflight carries no credentials.
    Always,
}

/// What the caller must hold: the account key, or a SAS with any one of these letters.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Resource type of an account SAS.
    pub scope: Scope,
    /// Whether an account SAS of any resource type will do.
    pub any_scope: bool,
    /// Permission letters of an account SAS, any of them; empty: no SAS can do it.
    pub account_sas: &'static str,
    /// Permission letters of a service SAS, any of them; empty: no service SAS can do it.
    pub service_sas: &'static str,
    /// Letters for what a request asks in particular, in place of those above.
    pub refined: Option<fn(&Call) -> Option<&'static str>>,
    /// Whether only a bearer token will do.
    pub token_only: bool,
    /// Anonymous access.
    pub anonymous: Anonymous,
}

impl Access {
    /// An account SAS with any of these letters at the service.
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

    /// An account SAS with any of these letters at containers; no service SAS.
    pub const fn container(account_sas: &'static str) -> Self {
        Access {
            scope: Scope::Container,
            ..Self::service(account_sas)
        }
    }

    /// An account or service SAS with any of these letters at objects.
    pub const fn object(letters: &'static str) -> Self {
        Access {
            scope: Scope::Object,
            service_sas: letters,
            ..Self::service(letters)
        }
    }

    /// The account key only: no SAS can do it.
    pub const fn owner() -> Self {
        Self::container("")
    }

    /// A bearer token only: no account key and no SAS can do it.
    pub const fn token() -> Self {
        Access {
            token_only: true,
            ..Self::service("")
        }
    }

    /// Whether it is the account key's alone, but for newer tokens.
    pub const fn is_owners(&self) -> bool {
        self.account_sas.is_empty() && self.service_sas.is_empty() && !self.token_only
    }

    /// With letters for what a request asks in particular.
    #[must_use]
    pub const fn refined(mut self, refine: fn(&Call) -> Option<&'static str>) -> Self {
        self.refined = Some(refine);
        self
    }

    /// Whatever resource type an account SAS has: for a batch, whose parts are judged one by one,
    /// and for what concerns the account.
    #[must_use]
    pub const fn with_any_scope(mut self) -> Self {
        self.any_scope = true;
        self
    }

    /// Other letters for a service SAS.
    #[must_use]
    pub const fn with_service_sas(mut self, letters: &'static str) -> Self {
        self.service_sas = letters;
        self
    }

    /// Open to anybody at this level of public access.
    #[must_use]
    pub const fn public(mut self, anonymous: Anonymous) -> Self {
        self.anonymous = anonymous;
        self
    }
}

/// Reading a blob, which a copy does with its source as well.
pub const READ_BLOB: Access = Access::object("r").public(Anonymous::Blob);
