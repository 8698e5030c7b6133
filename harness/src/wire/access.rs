//! Accounts and their signatures.

use bytes::Bytes;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::sas::build::AccountSas;
use smalt_protocol::signing::shared_key::{Scheme, SigningInput, authorization};
use smalt_protocol::{ApiVersion, Service, Timestamp};

use super::message::Request;
use super::url::Url;

/// The default account of smalt and Azurite.
pub const ACCOUNT: &str = EMULATOR_ACCOUNT_NAME;

/// Version of the requests that prepare or empty an account: all targets support it.
const OWNERS_VERSION: ApiVersion = ApiVersion::V2019_02_02;

/// A signature for the default account that permits everything until the end of 2099.
pub const FULL: AccountSas<'static> = AccountSas {
    version: ApiVersion::V2021_12_02,
    account: ACCOUNT,
    services: "bqt",
    resource_types: "sco",
    permissions: "rwdlacuptf",
    start: None,
    expiry: Timestamp::from_unix_s(4_102_444_799),
    ip: "",
    protocol: "https,http",
    encryption_scope: "",
};

/// An account with its key.
#[derive(Clone)]
pub struct Account {
    /// Account name, as in host names and signatures.
    pub name: String,
    /// Account key, for Shared Key and SAS signatures.
    pub key: AccountKey,
}

impl Account {
    /// Returns an account with a key in Base64; `None` when the key is invalid.
    pub fn new(name: &str, key: &str) -> Option<Account> {
        let key = AccountKey::parse(key)?;
        let name = name.to_owned();
        Some(Account { name, key })
    }

    /// Returns the default account of smalt and Azurite.
    ///
    /// # Panics
    /// Never: its key is a constant.
    pub fn emulator() -> Account {
        let account = Account::new(ACCOUNT, EMULATOR_ACCOUNT_KEY);
        account.unwrap_or_else(|| unreachable!("the key of {ACCOUNT} is Base64"))
    }

    /// Returns the query string of an account SAS.
    pub fn sas(&self, sas: AccountSas<'_>) -> String {
        let account = self.name.as_str();
        AccountSas { account, ..sas }.sign(self.key.as_bytes())
    }

    /// Returns a request of the account's owner, dated and signed.
    pub fn request(
        &self,
        service: Service,
        now: Timestamp,
        (method, url): (&str, String),
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Request {
        let own = [
            ("x-ms-version", OWNERS_VERSION.to_string()),
            ("x-ms-date", now.rfc1123()),
            ("content-length", body.len().to_string()),
            ("accept", "application/json;odata=nometadata".to_owned()),
        ];
        let more = headers
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        let mut request = Request {
            method: method.to_owned(),
            url,
            headers: own.into_iter().chain(more).collect(),
            body,
        };
        self.sign(Scheme::SharedKey, service, OWNERS_VERSION, &mut request);
        request
    }

    /// Signs a request; `unnamed` is the version to assume when the request names none.
    pub fn sign(
        &self,
        scheme: Scheme,
        service: Service,
        unnamed: ApiVersion,
        request: &mut Request,
    ) {
        let Some(url) = Url::parse(&request.url) else {
            return;
        };
        let version = request.headers.get("x-ms-version");
        let pairs: Vec<(&str, &str)> = request.headers.iter().collect();
        let input = SigningInput {
            service,
            scheme,
            version: version.and_then(ApiVersion::parse).unwrap_or(unnamed),
            method: &request.method,
            account: &self.name,
            path: if url.path.is_empty() { "/" } else { &url.path },
            query: &url.decoded_query(),
            headers: &pairs,
        };
        let value = authorization(&input, self.key.as_bytes());
        request.headers.push("authorization", value);
    }
}

/// A query that permits everything in the default account, signed once so that signing costs the
/// load generator nothing.
#[derive(Clone, Debug)]
pub struct Access {
    query: String,
}

impl Access {
    /// Returns access to every service and resource, with all permissions of this version.
    pub fn full(version: ApiVersion) -> Self {
        let query = Account::emulator().sas(AccountSas { version, ..FULL });
        Access { query }
    }

    /// Returns the signed query, without `?`.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Returns `/account/<rest>` with the signature; `rest` may have its own query.
    pub fn path(&self, rest: &str) -> String {
        let separator = if rest.contains('?') { '&' } else { '?' };
        format!("/{ACCOUNT}/{rest}{separator}{}", self.query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_appended_to_an_existing_query() {
        let access = Access::full(ApiVersion::V2021_12_02);
        assert!(
            access
                .path("c/b")
                .starts_with("/devstoreaccount1/c/b?sv=2021-12-02")
        );
        assert!(access.path("c?comp=list").contains("?comp=list&sv="));
        assert!(access.query().contains("sig="));
    }
}
