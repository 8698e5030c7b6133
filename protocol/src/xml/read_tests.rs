//! Tests of the parser: texts, recorded positions, limits, arbitrary bytes.

use proptest::prelude::*;

use super::*;

/// Returns line, position and reason of an error.
fn refusal(error: &StorageError) -> (String, String, String) {
    assert_eq!(
        (error.status(), error.code()),
        (400, ErrorCode::InvalidXmlDocument)
    );
    let names: Vec<&str> = error.elements().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["LineNumber", "LinePosition", "Reason"]);
    let value = |at: usize| error.elements()[at].1.clone();
    (value(0), value(1), value(2))
}

fn place(document: &str) -> (String, String) {
    let (line, position, reason) = refusal(&read_document(document.as_bytes(), 9).unwrap_err());
    let reported = format!("Line {line}, position {position}.");
    assert!(
        reason.starts_with("Error parsing Xml content: "),
        "{reason}"
    );
    assert!(reason.ends_with(&reported), "{reason}");
    (line, position)
}

#[test]
fn parses_texts_and_children() {
    let document = "\u{feff}<?xml version='1.0' encoding='utf-8'?>\n<!-- c --><a x=\"1\">1&amp;\
                    <b/>2&#x41;&lt;<![CDATA[<&>]]>\r\n<c> t </c></a>\n";
    let root = read_document(document.as_bytes(), 9).unwrap();
    assert_eq!((root.name, root.text.as_ref()), ("a", "1&2A<<&>\n"));
    assert_eq!(
        root.children.iter().map(|c| c.name).collect::<Vec<_>>(),
        ["b", "c"]
    );
    assert_eq!(root.child("c").map(Element::trimmed), Some("t"));
    assert_eq!(root.child("d"), None);
}

#[test]
fn positions_match_the_recordings() {
    let declaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    let policy = |inner: &str| {
        format!(
            "{declaration}<StorageServiceProperties><DeleteRetentionPolicy>{inner}\
             </DeleteRetentionPolicy></StorageServiceProperties>"
        )
    };
    let document = policy("<Enabled>true</Enabled>");
    let root = read_document(document.as_bytes(), 9).unwrap();
    let error = root
        .child("DeleteRetentionPolicy")
        .unwrap()
        .required("Days")
        .unwrap_err();
    let expected = (
        "2".to_owned(),
        "75".to_owned(),
        "Element is missing: Days.".to_owned(),
    );
    assert_eq!(refusal(&error), expected);
    for (days, position) in [("0", "89"), ("366", "91")] {
        let document = policy(&format!("<Enabled>true</Enabled><Days>{days}</Days>"));
        let root = read_document(document.as_bytes(), 9).unwrap();
        let days = root
            .child("DeleteRetentionPolicy")
            .unwrap()
            .required("Days")
            .unwrap();
        let expected = ("2".to_owned(), position.to_owned(), "r".to_owned());
        assert_eq!(refusal(&days.refuse("r")), expected);
    }
    let document = format!("{declaration}<StorageServiceProperties />");
    let root = read_document(document.as_bytes(), 9).unwrap();
    assert_eq!(refusal(&root.refuse("r")).1, "29");
    let error = root.unexpected();
    assert_eq!(error.code(), ErrorCode::InvalidXmlDocument);
    let expected = [("LineNumber", "2"), ("LinePosition", "2")];
    assert_eq!(
        error.elements(),
        expected.map(|(name, value)| (name, value.to_owned()))
    );
}

#[test]
fn invalid_characters_have_the_recorded_positions() {
    let message = |inner: &str| {
        format!("<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage><MessageText>{inner}")
    };
    for (inner, position) in [
        ("\u{1}</MessageText></QueueMessage>", "28"),
        ("ü😀\u{ffff}</MessageText></QueueMessage>", "31"),
        ("ab&#1;</MessageText></QueueMessage>", "30"),
        ("&nbsp;</MessageText></QueueMessage>", "28"),
    ] {
        assert_eq!(
            place(&message(inner)),
            ("2".to_owned(), position.to_owned()),
            "{inner:?}"
        );
    }
    let document = message("\u{1}</MessageText></QueueMessage>");
    let error = read_document(document.as_bytes(), 9).unwrap_err();
    let reason = "Error parsing Xml content: '.', hexadecimal value 0x01, is an invalid character. \
                  Line 2, position 28.";
    assert_eq!(refusal(&error).2, reason);
}

#[test]
fn malformed_documents_are_rejected() {
    for document in [
        "",
        "text",
        "<a>",
        "<a></b>",
        "</a>",
        "<a/><b/>",
        "<a/>text",
        "<a",
        "<a b></a>",
        "<a b=1/>",
        "<1/>",
        "<>x</>",
        "<a>&unknown;</a>",
        "<a>& b</a>",
        "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
        "<!DOCTYPE a><a/>",
        "<a><b/><b/><b/><b/><b/><b/><b/><b/><b/></a>",
    ] {
        place(document);
    }
    let error = read_document(b"<a>\xff</a>", 9).unwrap_err();
    assert_eq!(refusal(&error).0, "1");
}

#[test]
fn deep_documents_are_rejected() {
    let deep = |depth: usize| "<a>".repeat(depth) + &"</a>".repeat(depth);
    assert!(read_document(deep(XML_DEPTH_MAX).as_bytes(), 100).is_ok());
    for depth in [XML_DEPTH_MAX + 1, 20_000] {
        let error = read_document(deep(depth).as_bytes(), 100_000).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidXmlDocument);
    }
}

#[test]
fn blank_bodies_are_recognized() {
    assert!(is_blank(b"") && is_blank(b" \r\n") && is_blank("\u{feff}\n".as_bytes()));
    assert!(!is_blank(b"<a/>"));
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_rejected(bytes: Vec<u8>) {
        let _ = read_document(&bytes, 9);
    }

    #[test]
    fn any_markup_is_parsed_or_rejected(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("<a>"), Just("</a>"), Just("<b/>"), Just("&amp;"), Just("&#0;"), Just("&x;"),
                Just("<![CDATA["), Just("]]>"), Just("<!--"), Just("-->"), Just("<?"), Just("?>"),
                Just("<!DOCTYPE"), Just("<"), Just(">"), Just("\""), Just("ü"), Just("\u{ffff}"),
                Just("<a x="), Just("'"), Just("\n"), Just("&"),
            ],
            0..20,
        ),
    ) {
        if let Err(error) = read_document(parts.concat().as_bytes(), 9) {
            prop_assert_eq!(error.code(), ErrorCode::InvalidXmlDocument);
        }
    }
}

/// Without the limit this would take minutes, since each name is compared with all others.
#[test]
fn attributes_are_parsed_and_bounded() {
    let document = b"<a xmlns:m='n' m:type=\"x&amp;y\"/>";
    let root = read_document(document, 1).unwrap();
    assert_eq!(root.attribute("type"), Some("x&y"));
    assert_eq!(root.attribute("m:type"), None);
    let many = |count: usize| {
        let attributes: String = (0..count).map(|n| format!(" a{n}=''")).collect();
        format!("<m:a{attributes}/>")
    };
    assert_eq!(
        read_document(many(64).as_bytes(), 1).unwrap().local_name(),
        "a"
    );
    assert!(read_document(many(65).as_bytes(), 1).is_err());
    assert!(read_document(many(100_000).as_bytes(), 1).is_err());
}
