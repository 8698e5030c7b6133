//! Whole queries: requests, blobs, and the resulting frames.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug, PartialEq)]
enum Told {
    Data(String),
    Error(bool, String, String, u64),
    Progress(u64, u64),
    End(u64),
}

fn long(bytes: &mut &[u8]) -> i64 {
    let (mut number, mut shift) = (0_u64, 0);
    loop {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return (number >> 1) as i64 ^ -((number & 1) as i64);
        }
    }
}

fn count(bytes: &mut &[u8]) -> u64 {
    u64::try_from(long(bytes)).unwrap()
}

fn string(bytes: &mut &[u8]) -> String {
    let length = usize::try_from(long(bytes)).unwrap();
    let (text, rest) = bytes.split_at(length);
    *bytes = rest;
    String::from_utf8_lossy(text).into_owned()
}

/// Decodes a container file according to the specification.
fn unframe(file: &[u8]) -> Vec<Told> {
    let mut rest = file.strip_prefix(b"Obj\x01").unwrap();
    assert_eq!(long(&mut rest), 1);
    assert_eq!(string(&mut rest), "avro.schema");
    serde_json::from_str::<serde_json::Value>(&string(&mut rest)).unwrap();
    assert_eq!(long(&mut rest), 0);
    let (sync, mut rest) = rest.split_at(16);
    let mut told = Vec::new();
    while !rest.is_empty() {
        assert_eq!(long(&mut rest), 1);
        let length = usize::try_from(long(&mut rest)).unwrap();
        let (mut block, after) = rest.split_at(length);
        rest = after.strip_prefix(sync).unwrap();
        told.push(match long(&mut block) {
            0 => Told::Data(string(&mut block)),
            1 => {
                let is_fatal = block[0] == 1;
                block = &block[1..];
                let (name, description) = (string(&mut block), string(&mut block));
                Told::Error(is_fatal, name, description, count(&mut block))
            }
            2 => Told::Progress(count(&mut block), count(&mut block)),
            3 => Told::End(count(&mut block)),
            other => panic!("{other}"),
        });
        assert!(block.is_empty());
    }
    told
}

fn document(query: &str, serializations: &str) -> String {
    let query = query.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<QueryRequest><QueryType>SQL</QueryType><Expression>{query}</Expression>\
         {serializations}</QueryRequest>"
    )
}

fn run(document: &str, blob: &[u8], piece: usize) -> Result<Vec<Told>, StorageError> {
    let request = QueryRequest::parse(document.as_bytes())?;
    let now = Timestamp::parse_iso("2026-11-21T12:00:00.0000000Z").unwrap();
    let total = blob.len() as u64;
    let version = ApiVersion::V2021_12_02;
    let mut runner = Runner::new(request, total, version, Uuid::from_u128(9), now)?;
    let mut file = Vec::new();
    for mut piece in blob.chunks(piece) {
        while !piece.is_empty() && !runner.is_over() {
            let taken = runner.read(piece)?;
            piece = &piece[taken..];
            file.extend(runner.take().concat());
        }
    }
    runner.finish()?;
    file.extend(runner.take().concat());
    Ok(unframe(&file))
}

const CSV: &str = "";
const HEADED: &str = "<InputSerialization><Format><Type>delimited</Type>\
    <DelimitedTextConfiguration><HasHeaders>true</HasHeaders></DelimitedTextConfiguration>\
    </Format></InputSerialization>";
const JSON: &str = "<InputSerialization><Format><Type>json</Type></Format></InputSerialization>";
const TO_JSON: &str =
    "<OutputSerialization><Format><Type>json</Type></Format></OutputSerialization>";

/// Returns the rows of the response and the number of errors.
fn ask(query: &str, serializations: &str, blob: &str) -> (String, usize) {
    let told = run(&document(query, serializations), blob.as_bytes(), 7);
    let told = told.unwrap_or_else(|error| panic!("{query}: {}", error.message()));
    let mut rows = String::new();
    let mut errors = 0;
    for told in told {
        match told {
            Told::Data(data) => rows += &data,
            Told::Error(..) => errors += 1,
            _ => {}
        }
    }
    (rows, errors)
}

const NUMBERS: &str = "100,200,300,400\n300,400,500,600\n";

mod answers;
mod any;
mod costs;

/// QB3: a row that cannot be evaluated is omitted and reported.
#[test]
fn reports_rows_that_cannot_be_evaluated() {
    for (expression, name) in [
        ("_3", "InvalidColumnOrdinal"),
        ("CAST(_1 AS INT)", "InvalidTypeConversion"),
        ("1 / 0", "DivideByZero"),
        ("9223372036854775807 + 1", "ArithmeticOverflow"),
        ("DATE_ADD(year, 9999, '2020T')", "ArithmeticOverflow"),
        ("TO_STRING('2020T', 'q')", "InvalidTypeConversion"),
    ] {
        let query = document(&format!("SELECT {expression} FROM BlobStorage"), CSV);
        let told = run(&query, b"x,y\nx,y\n", 3).unwrap();
        let positions: Vec<_> = told
            .iter()
            .filter_map(|told| match told {
                Told::Error(false, said, _, position) if said == name => Some(*position),
                _ => None,
            })
            .collect();
        assert_eq!(positions, [0, 4], "{expression} {told:?}");
        assert!(
            !told.iter().any(|told| matches!(told, Told::Data(_))),
            "{expression}"
        );
    }
}

#[test]
fn aggregates_rows() {
    let csv = "3\n1\nx\n\n10\n";
    for (select, blob, rows, errors) in [
        ("COUNT(*)", csv, "5", 0),
        ("COUNT(NULLIF(_1, ''))", csv, "4", 0),
        ("SUM(_1)", "3\n1\n10", "14", 0),
        ("SUM(CAST(_1 AS INT))", csv, "14", 2),
        ("AVG(_1)", "3\n1\n10\n2", "4", 0),
        ("MIN(CAST(_1 AS INT))", "3\n1\n10", "1", 0),
        ("MAX(_1)", "3\n1\n10", "3", 0),
        ("SUM(_1)", "", "", 0),
        ("COUNT(*)", "", "0", 0),
    ] {
        let query = format!("SELECT {select} FROM BlobStorage");
        assert_eq!(
            ask(&query, CSV, blob),
            (format!("{rows}\n"), errors),
            "{select}"
        );
    }
    let named = ask(
        "SELECT COUNT(*) AS n FROM BlobStorage WHERE _1 = '1' LIMIT 3",
        TO_JSON,
        csv,
    );
    assert_eq!(named, ("{\"n\":1}\n".to_owned(), 0));
}

#[test]
fn follows_json_paths() {
    let mouse = "{\"id\":1,\"tags\":[\"wireless\",\"accessory\"],\"weight\":0.2,\
        \"dimensions\":{\"length\":3,\"width\":2},\
        \"warehouses\":[{\"latitude\":41.8,\"longitude\":-87.6},{\"latitude\":1}]}";
    let json_json = format!("{JSON}{TO_JSON}");
    for (query, rows) in [
        (
            "SELECT latitude FROM BlobStorage[*].warehouses[*]",
            "{\"latitude\":41.8}\n{\"latitude\":1}\n",
        ),
        (
            "SELECT length FROM BlobStorage[*].dimensions",
            "{\"length\":3}\n",
        ),
        (
            "SELECT weight,warehouses[0].longitude,id,tags[1] FROM BlobStorage[*]",
            "{\"weight\":0.2,\"longitude\":-87.6,\"id\":1,\"tags\":\"accessory\"}\n",
        ),
        (
            "SELECT * FROM BlobStorage[*].dimensions d WHERE d.Width = 2",
            "{\"length\":3,\"width\":2}\n",
        ),
        (
            "SELECT id FROM BlobStorage WHERE nothing IS MISSING AND id IS NOT MISSING",
            "{\"id\":1}\n",
        ),
        (
            "SELECT dimensions FROM BlobStorage",
            "{\"dimensions\":{\"length\":3,\"width\":2}}\n",
        ),
        ("SELECT id FROM BlobStorage[*].nowhere", ""),
        ("SELECT \"ID\" FROM BlobStorage", "{}\n"),
        (
            "SELECT latitude FROM BlobStorage[*].warehouses[1]",
            "{\"latitude\":1}\n",
        ),
    ] {
        assert_eq!(
            ask(query, &json_json, mouse),
            (rows.to_owned(), 0),
            "{query}"
        );
        assert_eq!(
            ask(query, &json_json, &format!("[{mouse}]")),
            (rows.to_owned(), 0),
            "{query}"
        );
    }
}

/// QB4: an invalid query is rejected before the response starts.
#[test]
fn rejects_invalid_queries() {
    let deep = format!(
        "SELECT {}1{} FROM BlobStorage",
        "(".repeat(9_999),
        ")".repeat(9_999)
    );
    let many = format!("SELECT {}_1 FROM BlobStorage", "_1,".repeat(49));
    let long = format!("SELECT * FROM BlobStorage{}", "[0]".repeat(9_999));
    for query in [
        "",
        "garbage",
        "SELECT",
        "SELECT FROM BlobStorage",
        "SELECT * FROM Elsewhere",
        "SELECT * FROM BlobStorage WHERE",
        "SELECT * FROM BlobStorage LIMIT -1",
        "SELECT * FROM BlobStorage LIMIT x",
        "SELECT *, _1 FROM BlobStorage",
        "SELECT COUNT(*), _1 FROM BlobStorage",
        "SELECT SUM(*) FROM BlobStorage",
        "SELECT sys.split(10) FROM BlobStorage",
        "SELECT * FROM BlobStorage[0]",
        "SELECT * FROM BlobStorage[*].a",
        "SELECT name FROM BlobStorage",
        "SELECT _0 FROM BlobStorage",
        "SELECT NOSUCH(1) FROM BlobStorage",
        "SELECT LOWER() FROM BlobStorage",
        "SELECT CAST(1 AS BLOB) FROM BlobStorage",
        "SELECT 'open FROM BlobStorage",
        "SELECT CASE END FROM BlobStorage",
        "DELETE FROM BlobStorage",
        "SELECT * FROM BlobStorage; SELECT * FROM BlobStorage",
        &deep,
        &many,
        &long,
    ] {
        let refused = run(&document(query, CSV), b"a,b\n", 9).unwrap_err();
        assert_eq!(
            refused.code(),
            smalt_protocol::ErrorCode::ErrorProcessingQueryExpression,
            "{query}"
        );
        assert_eq!(refused.status(), 400);
    }
    for blob in ["", "x,y\n"] {
        let query = document("SELECT z FROM BlobStorage", HEADED);
        assert!(run(&query, blob.as_bytes(), 9).is_err());
    }
}

/// QB5: progress every 4 MiB and at the end, after the results.
#[test]
fn reports_progress() {
    let kinds = |told: &[Told]| -> Vec<Told> {
        let without = |told: &Told| match told {
            Told::Data(_) => Told::Data(String::new()),
            other => other.clone(),
        };
        told.iter().map(without).collect()
    };
    let data = Told::Data(String::new());
    let mib = |count: u64| count * MIB;
    let blob = NUMBERS.repeat(9 * 32 * 1024);
    let total = blob.len() as u64;
    assert_eq!(total, mib(9));
    let told = run(
        &document("SELECT * FROM BlobStorage", CSV),
        blob.as_bytes(),
        65_536,
    )
    .unwrap();
    assert_eq!(
        kinds(&told),
        [
            data.clone(),
            Told::Progress(mib(4), total),
            data.clone(),
            Told::Progress(mib(8), total),
            data.clone(),
            Told::Progress(total, total),
            Told::End(total),
        ]
    );
    let none = run(&document("SELECT * FROM BlobStorage", CSV), b"", 1).unwrap();
    assert_eq!(none, [Told::End(0)]);
    let first = run(
        &document("SELECT _1 FROM BlobStorage LIMIT 1", CSV),
        NUMBERS.as_bytes(),
        99,
    );
    assert_eq!(
        first.unwrap(),
        [
            Told::Data("100\n".to_owned()),
            Told::Progress(32, 32),
            Told::End(32),
        ]
    );
}

#[test]
fn stops_at_malformed_json() {
    let told = run(
        &document("SELECT * FROM BlobStorage", JSON),
        NUMBERS.as_bytes(),
        99,
    );
    let description = "Unexpected token ',' at [byte: 3]. Expecting tokens '{', or '['.";
    let error = Told::Error(true, "ParseError".to_owned(), description.to_owned(), 0);
    let data = Told::Data("\n".to_owned());
    assert_eq!(
        told.unwrap(),
        [data, Told::Progress(32, 32), error, Told::End(32)]
    );
}

#[test]
fn splits_between_records() {
    let blob = format!("{}\n", "x".repeat(99)).repeat(110_000);
    let query = document("SELECT sys.split(10485760) FROM BlobStorage", CSV);
    let told = run(&query, blob.as_bytes(), 65_536).unwrap();
    let rows: String = told
        .iter()
        .filter_map(|told| match told {
            Told::Data(data) => Some(data.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(rows, "10485800\n514200\n");
}

/// A record that does not end is not buffered without limit.
#[test]
fn record_length_is_bounded() {
    let blob = vec![b'x'; RECORD_BYTES_MAX + 65_536];
    for serializations in [CSV, JSON] {
        let text = if serializations == JSON {
            [b"\"", blob.as_slice()].concat()
        } else {
            blob.clone()
        };
        let query = document("SELECT * FROM BlobStorage", serializations);
        let told = run(&query, &text, 65_536).unwrap();
        assert!(
            told.iter()
                .any(|told| matches!(told, Told::Error(true, ..)))
        );
    }
}

const WORDS: &[&str] = &[
    "SELECT",
    "*",
    "FROM",
    "BlobStorage",
    "WHERE",
    "_1",
    "(",
    ")",
    "NOT",
    "-",
    "AND",
    "'x'",
    "1",
    "CASE",
    "WHEN",
    "THEN",
    "END",
    "CAST",
    "AS",
    "INT",
    "[",
    "]",
    ".",
    ",",
    "=",
    "LIKE",
    "IN",
    "é",
];

proptest! {
    /// No text causes anything but an error, and none overflows the stack.
    #[test]
    fn parses_or_rejects_any_query(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..40),
    ) {
        let words = words.join(" ");
        for query in [format!("SELECT {words} FROM BlobStorage"), words] {
            let _ = run(&document(&query, CSV), b"1,2\n", 9);
        }
    }

    #[test]
    fn result_does_not_depend_on_pieces(blob in "[0-9,\n\"a]{0,80}", piece in 1_usize..30) {
        let query = document("SELECT _2, _1 FROM BlobStorage WHERE _1 <> 'a'", CSV);
        let whole = run(&query, blob.as_bytes(), 99).unwrap();
        prop_assert_eq!(run(&query, blob.as_bytes(), piece).unwrap(), whole);
    }
}
