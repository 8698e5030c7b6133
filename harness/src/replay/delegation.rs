//! Tokens and user delegation keys: recordings contain them redacted, so both are made anew.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use smalt_protocol::signing::{AccountKey, sign};
use smalt_protocol::xml::read::{ELEMENTS_MAX, read_document};
use smalt_protocol::{Timestamp, uri};

use crate::wire::Answer;
use crate::wire::url::Url;

/// Owner of the key when a recording does not name one.
const SOMEBODY: &str = "00000000-0000-4000-8000-000000000001";
/// Seconds before and after the exchange for which a token is valid.
const TOKEN_WINDOW_S: u64 = 3_600;
/// The SAS parameters that name the key, and the corresponding elements of the key's document.
const FIELDS: [(&str, &str); 6] = [
    ("skoid", "SignedOid"),
    ("sktid", "SignedTid"),
    ("skt", "SignedStart"),
    ("ske", "SignedExpiry"),
    ("sks", "SignedService"),
    ("skv", "SignedVersion"),
];

/// A key that the target returned.
#[derive(Clone, PartialEq, Eq)]
pub struct DelegationKey {
    fields: Vec<(&'static str, String)>,
    key: AccountKey,
}

impl DelegationKey {
    /// Reads the key from an answer; `None` when the answer contains none.
    pub fn of(answer: &Answer) -> Option<Self> {
        let root = read_document(&answer.body, ELEMENTS_MAX).ok()?;
        if root.name != "UserDelegationKey" {
            return None;
        }
        let text = |name: &str| root.child(name).map(|child| child.trimmed().to_owned());
        let fields = FIELDS
            .iter()
            .map(|(field, element)| text(element).map(|text| (*field, text)));
        Some(DelegationKey {
            fields: fields.collect::<Option<_>>()?,
            key: AccountKey::parse(&text("Value")?)?,
        })
    }

    /// Puts this key's parameters into a SAS, in place of the recorded ones.
    pub fn name_in(&self, url: &mut Url) {
        for (field, value) in &self.fields {
            url.set_param(field, value);
        }
    }

    /// Signs a text.
    pub fn sign(&self, text: &str) -> String {
        sign(self.key.as_bytes(), text)
    }
}

/// Whether a request asks for a key, which requires a token.
pub fn asks_for_key(url: &Url) -> bool {
    let comp = uri::lookup(&url.decoded_query(), "comp").map(str::to_lowercase);
    comp.as_deref() == Some("userdelegationkey")
}

/// Creates a token for the owner of the key in the recorded answer.
pub fn token(answer: &Answer, now: Timestamp) -> String {
    let recorded = DelegationKey::of(answer);
    let id = |field: &str| {
        let fields = recorded.iter().flat_map(|key| &key.fields);
        let mut found = fields.filter(|(name, _)| *name == field);
        found.next().map_or(SOMEBODY, |(_, value)| value.as_str())
    };
    let now_s = now.since(Timestamp::UNIX_EPOCH).as_secs();
    let claims = serde_json::json!({
        "aud": "https://storage.azure.com",
        "iss": format!("https://sts.windows.net/{}/", id("sktid")),
        "nbf": now_s.saturating_sub(TOKEN_WINDOW_S),
        "exp": now_s + TOKEN_WINDOW_S,
        "oid": id("skoid"),
        "tid": id("sktid"),
    });
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let head = part(r#"{"typ":"JWT","alg":"RS256"}"#);
    format!("{head}.{}.{}", part(&claims.to_string()), part("sig"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "<UserDelegationKey><SignedOid>o</SignedOid><SignedTid>t</SignedTid>\
        <SignedStart>2020-01-01T00:00:00Z</SignedStart>\
        <SignedExpiry>2020-01-02T00:00:00Z</SignedExpiry><SignedService>b</SignedService>\
        <SignedVersion>2020-02-10</SignedVersion><Value>a2V5</Value></UserDelegationKey>";

    fn answer(body: &str) -> Answer {
        Answer {
            status: 200,
            headers: Default::default(),
            body: body.to_owned().into(),
        }
    }

    #[test]
    fn a_signature_names_the_live_key() {
        let key = DelegationKey::of(&answer(KEY)).unwrap();
        let text = "https://account.blob.core.windows.net/c/b?skoid=x&sktid=y&sig=z";
        let mut url = Url::parse(text).unwrap();
        key.name_in(&mut url);
        assert_eq!(url.param("skoid").as_deref(), Some("o"));
        assert_eq!(url.param("skv").as_deref(), Some("2020-02-10"));
        assert_eq!(key.sign("text"), sign(b"key", "text"));
        assert!(DelegationKey::of(&answer("<Other/>")).is_none());
        assert!(DelegationKey::of(&answer("")).is_none());
    }

    #[test]
    fn a_token_is_for_the_owner_of_the_recorded_key() {
        let now = Timestamp::from_unix_s(1_600_000_000);
        for (body, owner) in [(KEY, "o"), ("", SOMEBODY)] {
            let token = token(&answer(body), now);
            let claims = token.split('.').nth(1).unwrap();
            let claims = URL_SAFE_NO_PAD.decode(claims).unwrap();
            let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
            assert_eq!(claims["oid"], owner);
            assert_eq!(claims["exp"], 1_600_003_600);
        }
    }
}
