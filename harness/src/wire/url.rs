//! URLs as clients wrote them, parsed without losing their percent-encoding.

use percent_encoding::{
    AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode,
};

/// Characters that stay unescaped in values that the harness writes.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Characters that no request line may contain unescaped, although some clients send them so.
const FORBIDDEN: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'`')
    .add(b'\\')
    .add(b'^')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// An absolute URL in parts. Path and query keep the client's encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// `https` or `http`.
    pub scheme: String,
    /// Host and port.
    pub authority: String,
    /// Path with its leading slash; empty when the URL ends with the authority.
    pub path: String,
    /// Encoded names and values in order; a value is `None` without `=`.
    pub query: Option<Vec<(String, Option<String>)>>,
}

impl Url {
    /// Parses an absolute URL; `None` without a scheme or host.
    pub fn parse(text: &str) -> Option<Url> {
        let (scheme, rest) = text.split_once("://")?;
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let slash = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(slash);
        if authority.is_empty() {
            return None;
        }
        Some(Url {
            scheme: scheme.to_owned(),
            authority: authority.to_owned(),
            path: path.to_owned(),
            query: query.map(split_query),
        })
    }

    /// Returns account and service of `account.blob.core.windows.net`.
    pub fn account_and_service(&self) -> Option<(&str, &str)> {
        let (account, rest) = self.authority.split_once('.')?;
        let (service, domain) = rest.split_once('.')?;
        (domain == "core.windows.net").then_some((account, service))
    }

    /// Returns the decoded value of the first query parameter of this name; ignores case.
    pub fn param(&self, name: &str) -> Option<String> {
        let found = self
            .pairs()
            .find(|(n, _)| decode(n).eq_ignore_ascii_case(name))?;
        Some(decode(found.1.as_deref().unwrap_or_default()))
    }

    /// Returns decoded names and values of the query in order, without empty parameters.
    pub fn decoded_query(&self) -> Vec<(String, String)> {
        let named = self
            .pairs()
            .filter(|(name, value)| !name.is_empty() || value.is_some());
        named
            .map(|(n, v)| (decode(n), decode(v.as_deref().unwrap_or_default())))
            .collect()
    }

    /// Whether the query has a parameter of this name.
    pub fn has_param(&self, name: &str) -> bool {
        self.param(name).is_some()
    }

    /// Replaces or adds a query parameter; encodes the value.
    pub fn set_param(&mut self, name: &str, value: &str) {
        let encoded = Some(encode(value));
        let pairs = self.query.get_or_insert_default();
        match pairs
            .iter_mut()
            .find(|(n, _)| decode(n).eq_ignore_ascii_case(name))
        {
            Some(pair) => pair.1 = encoded,
            None => pairs.push((name.to_owned(), encoded)),
        }
    }

    /// Removes all query parameters of this name.
    pub fn remove_param(&mut self, name: &str) {
        if let Some(pairs) = &mut self.query {
            pairs.retain(|(n, _)| !decode(n).eq_ignore_ascii_case(name));
        }
    }

    /// Returns the decoded path segments, without the leading slash.
    pub fn segments(&self) -> Vec<String> {
        self.path.split('/').skip(1).map(decode).collect()
    }

    /// Replaces decoded path segments and query values for which `change` returns a value.
    pub fn rewrite(&mut self, mut change: impl FnMut(Option<&str>, &str) -> Option<String>) {
        let segments: Vec<String> = self
            .path
            .split('/')
            .map(|raw| {
                change(None, &decode(raw)).map_or_else(|| raw.to_owned(), |new| encode(&new))
            })
            .collect();
        self.path = segments.join("/");
        for (name, value) in self.query.iter_mut().flatten() {
            let Some(raw) = value else { continue };
            if let Some(new) = change(Some(&decode(name)), &decode(raw)) {
                *raw = encode(&new);
            }
        }
    }

    /// Returns path and query as in a request line.
    pub fn path_and_query(&self) -> String {
        let mut text = self.path.clone();
        if let Some(pairs) = &self.query {
            let pairs: Vec<String> = pairs
                .iter()
                .map(|(name, value)| match value {
                    Some(value) => format!("{name}={value}"),
                    None => name.clone(),
                })
                .collect();
            text.push('?');
            text.push_str(&pairs.join("&"));
        }
        utf8_percent_encode(&text, FORBIDDEN).to_string()
    }

    fn pairs(&self) -> impl Iterator<Item = &(String, Option<String>)> {
        self.query.iter().flatten()
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}://{}{}",
            self.scheme,
            self.authority,
            self.path_and_query()
        )
    }
}

fn split_query(query: &str) -> Vec<(String, Option<String>)> {
    if query.is_empty() {
        return Vec::new();
    }
    let pair = |part: &str| match part.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (part.to_owned(), None),
    };
    query.split('&').map(pair).collect()
}

/// Percent-decodes a string; sequences that are not UTF-8 stay encoded.
pub fn decode(text: &str) -> String {
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) => decoded.into_owned(),
        Err(_) => text.to_owned(),
    }
}

/// Percent-encodes a path segment or a query value.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, VALUE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_clients_encoding() {
        for text in [
            "https://account.blob.core.windows.net",
            "https://account.blob.core.windows.net/c/b%20c?snapshot=2022%3A1Z&comp",
            "https://account.table.core.windows.net/t(PartitionKey='a',RowKey='%20')?$filter=a",
            "https://account.blob.core.windows.net/c/b?",
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Url::parse("/only/a/path"), None);
    }

    #[test]
    fn reads_and_changes_parameters() {
        let mut url = Url::parse("https://account.blob.core.windows.net/c?a=1&sig=R%3D&B").unwrap();
        assert_eq!(url.account_and_service(), Some(("account", "blob")));
        assert_eq!(url.param("SIG").as_deref(), Some("R="));
        url.set_param("sig", "x/y=");
        url.set_param("new", "a b");
        url.remove_param("a");
        assert_eq!(url.path_and_query(), "/c?sig=x%2Fy%3D&B&new=a%20b");
        url.rewrite(|name, value| (name == Some("new") && value == "a b").then(|| "c".into()));
        assert_eq!(url.param("new").as_deref(), Some("c"));
    }
}
