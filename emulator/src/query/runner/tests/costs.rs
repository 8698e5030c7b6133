//! Limits on the cost of a query.

use super::*;

fn fatal(query: &str, serializations: &str, blob: &[u8]) -> Vec<String> {
    let told = run(&document(query, serializations), blob, 65_536).unwrap();
    told.into_iter()
        .filter_map(|told| match told {
            Told::Error(true, name, ..) => Some(name),
            _ => None,
        })
        .collect()
}

/// Selecting the same long field many times would buffer it as often.
#[test]
fn results_of_one_record_are_bounded() {
    let blob = vec![b'x'; 2 * MIB as usize];
    for column in ["_1", "UPPER(_1)", "CAST(_1 AS STRING)"] {
        let columns = [column; 49].join(",");
        let query = format!("SELECT {columns} FROM BlobStorage");
        assert_eq!(fatal(&query, CSV, &blob), ["ResultTooLarge"], "{column}");
        let once = format!("SELECT {column} FROM BlobStorage");
        assert_eq!(fatal(&once, CSV, &blob), [""; 0], "{column}");
    }
    // The limit applies to all rows of a record together.
    let items = vec!["1"; 200_000].join(",");
    let json = format!("{{\"a\":[{items}]}}");
    let long = "x".repeat(1_000);
    let query = format!("SELECT '{long}' FROM BlobStorage[*].a[*]");
    assert_eq!(fatal(&query, JSON, json.as_bytes()), ["ResultTooLarge"]);
    let wrong = "SELECT CAST('x' AS INT) FROM BlobStorage[*].a[*]";
    assert_eq!(fatal(wrong, JSON, json.as_bytes()), [""; 0]);
}

#[test]
fn steps_of_one_record_are_bounded() {
    let blob = vec![b'x'; MIB as usize];
    let fields = ["_1 = 'y'"; 2_000].join(" OR ");
    let query = format!("SELECT * FROM BlobStorage WHERE {fields}");
    assert_eq!(fatal(&query, CSV, &blob), ["OperationTimedOut"]);
    assert_eq!(fatal(&query, CSV, &blob[..1_000]), [""; 0]);
}

/// A long query yields between two records without losing any.
#[test]
fn turns_are_bounded() {
    let conditions = ["_1 = 'b'"; 5_000].join(" OR ");
    let query = document(
        &format!("SELECT * FROM BlobStorage WHERE {conditions} OR _1 = 'a'"),
        CSV,
    );
    let request = QueryRequest::parse(query.as_bytes()).unwrap();
    let now = Timestamp::parse_iso("2026-11-21T12:00:00.0000000Z").unwrap();
    let version = ApiVersion::LATEST;
    let blob = "a\n".repeat(1_000);
    let total = blob.len() as u64;
    let mut runner = Runner::new(request, total, version, Uuid::from_u128(9), now).unwrap();
    let (mut left, mut turns, mut file) = (blob.as_bytes(), 0, Vec::new());
    while !left.is_empty() {
        let taken = runner.read(left).unwrap();
        assert!(taken > 0 && taken < 200);
        left = &left[taken..];
        turns += 1;
        file.extend(runner.take().concat());
    }
    assert!(turns > 10, "{turns}");
    runner.finish().unwrap();
    file.extend(runner.take().concat());
    let data = unframe(&file).into_iter().find_map(|told| match told {
        Told::Data(data) => Some(data),
        _ => None,
    });
    assert_eq!(data, Some(blob));
}

/// The header row is indexed once, however many fields a query names.
#[test]
fn many_fields_of_a_wide_header_are_found() {
    let header: Vec<String> = (0..20_000).map(|n| format!("Column{n}")).collect();
    let blob = format!("{}\n", header.join(","));
    let fields: Vec<String> = (0..10_000).map(|n| format!("column{n} IS NULL")).collect();
    let query = format!(
        "SELECT \"Column19999\" FROM BlobStorage WHERE {}",
        fields.join(" OR ")
    );
    assert_eq!(ask(&query, HEADED, &blob), (String::new(), 0));
    let wide = ",".repeat(70_000);
    let refused = run(
        &document("SELECT a FROM BlobStorage", HEADED),
        wide.as_bytes(),
        65_536,
    );
    assert_eq!(refused.unwrap_err().status(), 400);
}
