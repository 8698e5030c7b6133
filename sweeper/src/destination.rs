//! Resolves where a dead blob goes: the grammar of `DeadBlobContainer` (S10), and what is rejected
//! (DS4, DS5).
//!
//! `c` keeps the blob's name in container `c`; `c/prefix/` adds the prefix to the name; `c/a/b`
//! renames the blob to exactly `a/b`.

use smalt_protocol::names;

/// Container and name of a dead blob.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Destination {
    /// Container name.
    pub container: String,
    /// Blob name.
    pub name: String,
}

/// Why a `DeadBlobContainer` value is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDestination {
    /// The container part breaks Azure's naming rules.
    #[error("the container name breaks Azure's rules")]
    Container,
    /// The blob part breaks Azure's naming rules.
    #[error("the blob name breaks Azure's rules")]
    Name,
}

/// Resolves a `DeadBlobContainer` value for the blob named `blob_name`.
pub fn resolve(value: &str, blob_name: &str) -> Result<Destination, BadDestination> {
    let value = value.trim();
    let (container, name) = match value.split_once('/') {
        None => (value, blob_name.to_owned()),
        Some((container, rest)) if rest.is_empty() || rest.ends_with('/') => {
            (container, format!("{rest}{blob_name}"))
        }
        Some((container, rest)) => (container, rest.to_owned()),
    };
    if !is_container_name(container) {
        return Err(BadDestination::Container);
    }
    // Blobs in the root container cannot have a slash in their names.
    if !is_blob_name(&name) || (container == "$root" && name.contains('/')) {
        return Err(BadDestination::Name);
    }
    Ok(Destination {
        container: container.to_owned(),
        name,
    })
}

/// Returns the container of a value in the grammar of `DeadBlobContainer`.
pub fn container_of(value: &str) -> &str {
    let value = value.trim();
    value
        .split_once('/')
        .map_or(value, |(container, _)| container)
}

/// Returns whether blobs can be in a container of this name.
pub fn is_container_name(name: &str) -> bool {
    names::validate_container_name(name).is_ok()
        && (!name.starts_with('$') || matches!(name, "$root" | "$web"))
}

/// Returns whether a blob name can be addressed unambiguously. Segments `.` and `..` are rejected
/// although the service lists them: every HTTP client resolves them to another blob or to the
/// container.
pub fn is_blob_name(name: &str) -> bool {
    names::validate_blob_name(name).is_ok()
        && !name.chars().any(char::is_control)
        && !name.split(['/', '\\']).any(|s| s == "." || s == "..")
}

/// Returns whether two names are endpoints of the same account: `acct` and `acct-secondary` are.
pub fn same_account(one: &str, other: &str) -> bool {
    let bare = |name: &str| {
        let lower = name.to_ascii_lowercase();
        lower
            .strip_suffix("-secondary")
            .map(str::to_owned)
            .unwrap_or(lower)
    };
    bare(one) == bare(other)
}

/// A container, or a part of one, that is swept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptPlace {
    /// Account name.
    pub account: String,
    /// Container name.
    pub container: String,
    /// Includes only names with this prefix; empty for the whole container.
    pub prefix: String,
}

impl SweptPlace {
    /// Returns whether this sweep would list a blob of `account`.
    pub fn covers(&self, account: &str, blob: &Destination) -> bool {
        same_account(&self.account, account)
            && self.container == blob.container
            && blob.name.starts_with(&self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// S10: the three forms, and invalid values.
    #[test]
    fn the_grammar_has_three_forms() {
        for (value, expected) in [
            ("dbc", Ok(("dbc", "x/y.txt"))),
            ("dbc/", Ok(("dbc", "x/y.txt"))),
            ("dbc/deleteme/", Ok(("dbc", "deleteme/x/y.txt"))),
            ("dbc/deleteme", Ok(("dbc", "deleteme"))),
            ("dbc/a/b", Ok(("dbc", "a/b"))),
            ("$web/old/", Ok(("$web", "old/x/y.txt"))),
            ("", Err(BadDestination::Container)),
            ("/", Err(BadDestination::Container)),
            ("/dbc", Err(BadDestination::Container)),
            ("DBC", Err(BadDestination::Container)),
            ("ab", Err(BadDestination::Container)),
            ("a--b", Err(BadDestination::Container)),
            ("-abc", Err(BadDestination::Container)),
            ("https://acct/dbc", Err(BadDestination::Container)),
            ("dbc/..", Err(BadDestination::Name)),
            ("dbc/../events/", Err(BadDestination::Name)),
            ("dbc/a/./b", Err(BadDestination::Name)),
            ("dbc/a\u{1}b", Err(BadDestination::Name)),
            ("$root", Err(BadDestination::Name)),
        ] {
            let resolved = resolve(value, "x/y.txt");
            let shown = resolved
                .as_ref()
                .map(|d| (d.container.as_str(), d.name.as_str()));
            assert_eq!(shown, expected.as_ref().map(|p| *p), "{value}");
        }
    }

    #[test]
    fn both_endpoints_of_an_account_are_one_account() {
        assert!(same_account("Acct", "acct-secondary"));
        assert!(!same_account("acct", "acct2"));
    }

    proptest! {
        #[test]
        fn a_resolved_place_is_always_addressable(value in ".{0,40}", name in ".{1,40}") {
            if let Ok(place) = resolve(&value, &name) {
                prop_assert!(is_container_name(&place.container));
                prop_assert!(is_blob_name(&place.name));
            }
        }
    }
}
