//! Tables of requested and stored encryption.

use http::{HeaderName, HeaderValue};

use super::*;

/// 32 zero bytes in base64; their hash follows.
const ZERO: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const ZERO_SHA256: &str = "Zmh6rfhivXdsj8GLjp+OIAiXFIVu4jOzkCpZHQ1fKSU=";

fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
    let headers = headers.iter().map(|&(name, value)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_static(value))
    });
    headers.collect()
}

fn requested(headers: &[(&'static str, &'static str)]) -> Result<Requested, ErrorCode> {
    Requested::of(&map(headers)).map_err(|error| error.code())
}

fn key(name: &str) -> Option<Encryption> {
    Some(Encryption::Key(name.to_owned()))
}

fn scope(name: &str) -> Option<Encryption> {
    Some(Encryption::Scope(name.to_owned()))
}

#[test]
fn key_must_be_complete_and_without_scope() {
    let (sha, aes) = ((KEY_SHA256, ZERO_SHA256), (ALGORITHM, "AES256"));
    let missing = Err(ErrorCode::MissingRequiredHeader);
    let invalid = Err(ErrorCode::InvalidHeaderValue);
    for (headers, expected) in [
        (&[][..], Ok(Requested(None))),
        (&[aes], Ok(Requested(None))),
        (&[(SCOPE, "s")], Ok(Requested(scope("s")))),
        (&[(KEY, ZERO), sha, aes], Ok(Requested(key(ZERO_SHA256)))),
        (&[(KEY, ZERO), sha], missing.clone()),
        (&[(KEY, ZERO), aes], missing.clone()),
        (&[sha, aes], missing),
        (&[(KEY, ZERO), sha, (ALGORITHM, "AES128")], invalid.clone()),
        (&[(KEY, "AAAA"), sha, aes], invalid.clone()),
        (&[(KEY, ZERO), (KEY_SHA256, ZERO), aes], invalid.clone()),
        (&[(KEY, ZERO), sha, aes, (SCOPE, "s")], invalid),
    ] {
        assert_eq!(requested(headers), expected, "{headers:?}");
    }
}

/// Stored encryption, given encryption, error of a read, error of a write.
#[test]
fn requests_must_match_the_encryption_of_the_blob() {
    let uses = Some(ErrorCode::BlobUsesCustomerSpecifiedEncryption);
    let differs = Some(ErrorCode::BlobCustomerSpecifiedEncryptionMismatch);
    let plain = Some(ErrorCode::BlobDoesNotUseCustomerSpecifiedEncryption);
    for (stored, given, read, written) in [
        (None, None, None, None),
        (None, key("a"), plain, plain),
        (None, scope("a"), plain, plain),
        (key("a"), None, uses, uses),
        (key("a"), key("a"), None, None),
        (key("a"), key("b"), differs, differs),
        (key("a"), scope("a"), differs, differs),
        (scope("a"), None, None, uses),
        (scope("a"), scope("a"), None, None),
        (scope("a"), scope("b"), differs, differs),
    ] {
        let given = Requested(given);
        let code = |result: Result<(), StorageError>| result.err().map(|error| error.code());
        let stored = stored.as_ref();
        assert_eq!(code(given.check_read(stored)), read, "{stored:?} {given:?}");
        let judged = code(given.check_write(stored, &None));
        assert_eq!(judged, written, "{stored:?} {given:?}");
    }
}

#[test]
fn container_default_may_exclude_other_scopes() {
    let forbidden = Err(ErrorCode::RequestForbiddenByContainerEncryptionPolicy);
    let open = Some(("c".to_owned(), false));
    let closed = Some(("c".to_owned(), true));
    let account = Some((ACCOUNT_SCOPE.to_owned(), true));
    for (policy, given, expected) in [
        (&None, None, Ok(None)),
        (&open, None, Ok(scope("c"))),
        (&open, scope("d"), Ok(scope("d"))),
        (&open, key("k"), Ok(key("k"))),
        (&closed, None, Ok(scope("c"))),
        (&closed, scope("c"), Ok(scope("c"))),
        (&closed, scope("d"), forbidden.clone()),
        (&closed, key("k"), forbidden.clone()),
        (&account, None, Ok(None)),
        (&account, scope("d"), forbidden),
    ] {
        let given = Requested(given);
        let new = given.of_new(policy).map_err(|error| error.code());
        assert_eq!(new, expected, "{policy:?} {given:?}");
    }
    assert!(
        Requested(None)
            .check_write(scope("c").as_ref(), &open)
            .is_ok()
    );
    assert!(Requested(None).check_write(None, &open).is_ok());
}

#[test]
fn responses_and_listings_show_the_encryption() {
    for (encryption, header, key_sha256, named) in [
        (key("k"), (KEY_SHA256, "k"), Some("k"), None),
        (scope("s"), (SCOPE, "s"), None, Some("s")),
    ] {
        let found = encryption.clone().unwrap();
        assert_eq!(found.header(), header);
        assert_eq!(found.key_sha256(), key_sha256);
        assert_eq!(found.scope(), named);
        assert_eq!(Requested(encryption).scope(), named);
    }
    assert_eq!(Requested(None).scope(), None);
}

/// The source of a copy has its own key headers, and no scope.
#[test]
fn copy_source_has_its_own_key() {
    let own = [
        (KEY, ZERO),
        (KEY_SHA256, ZERO_SHA256),
        (ALGORITHM, "AES256"),
    ];
    let source = SOURCE.into_iter().zip([ZERO, ZERO_SHA256, "AES256"]);
    for (headers, expected) in [
        (source.collect::<Vec<_>>(), Ok(Requested(key(ZERO_SHA256)))),
        (
            vec![(SOURCE[0], ZERO)],
            Err(ErrorCode::MissingRequiredHeader),
        ),
        (own.to_vec(), Ok(Requested(None))),
        (vec![(SCOPE, "s")], Ok(Requested(None))),
    ] {
        let found = Requested::of_source(&map(&headers)).map_err(|error| error.code());
        assert_eq!(found, expected, "{headers:?}");
    }
}

#[test]
fn only_scopes_of_the_account_are_available() {
    let scopes = BTreeSet::from(["mine".to_owned()]);
    for (scope, available, expected) in [
        ("mine", Some(&scopes), true),
        ("theirs", Some(&scopes), false),
        (ACCOUNT_SCOPE, Some(&scopes), true),
        ("theirs", None, true),
    ] {
        let judged = check_scope(scope, available);
        assert_eq!(judged.is_ok(), expected, "{scope}");
    }
}
