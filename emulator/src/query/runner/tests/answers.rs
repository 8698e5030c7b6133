//! Result rows: the queries of Microsoft's clients, and the language reference.

use super::*;

fn check(query: &str, settings: &str, blob: &str, rows: &str, errors: usize) {
    let found = ask(query, settings, blob);
    assert_eq!(found, (rows.to_owned(), errors), "{query} {blob}");
}

const TO_HEADED: &str = "<OutputSerialization><Format><Type>delimited</Type>\
    <DelimitedTextConfiguration><HasHeaders>true</HasHeaders></DelimitedTextConfiguration>\
    </Format></OutputSerialization>";
const TO_DOTTED: &str = "<OutputSerialization><Format><Type>delimited</Type>\
    <DelimitedTextConfiguration><ColumnSeparator>;</ColumnSeparator><FieldQuote>'</FieldQuote>\
    <RecordSeparator>.</RecordSeparator><EscapeChar>\\</EscapeChar>\
    </DelimitedTextConfiguration></Format></OutputSerialization>";
const ALL: &str = "SELECT * from BlobStorage";

/// QB1: the queries of Microsoft's clients on delimited text.
#[test]
fn delimited_text_results_match_the_clients_tests() {
    let both = format!("{HEADED}{TO_HEADED}");
    let above = "SELECT _2 from BlobStorage WHERE _1 > 250;";
    let object = "{\"_1\":\"400\"}\n";
    check(ALL, CSV, NUMBERS, NUMBERS, 0);
    check(ALL, CSV, "a,b\r\nc\r\n", "a,b\nc\n", 0);
    check(above, CSV, NUMBERS, "400\n", 0);
    check(above, TO_JSON, NUMBERS, object, 0);
    check(above, CSV, "hello,1\n300,250\n", "250\n", 1);
    check(above, CSV, "a.b\nc.d\n", "", 2);
    check(ALL, TO_DOTTED, "a,1.0.1\nb\n", "a;'1.0.1'.b.", 0);
    check(ALL, HEADED, "x,y\n1,2\n", "1,2\n", 0);
    check(ALL, &both, "x,y\n1,2\n", "x,y\n1,2\n", 0);
    let one = "SELECT Y from BlobStorage";
    check(one, &both, "x,y\n1,2\n3\n", "y\n2\n", 1);
    let quoted = "{\"_1\":\"1\",\"_2\":\"a\\\"b\"}\n";
    check(ALL, TO_JSON, "1,\"a\"\"b\"\n", quoted, 0);
}

/// QB1: the queries of Microsoft's clients on JSON.
#[test]
fn json_results_match_the_clients_tests() {
    let json_json = format!("{JSON}{TO_JSON}");
    let objects = "{\"name\": \"owner\", \"id\": 1}\n{\"name2\": \"owner2\"}\n{\"name\":null}";
    let names = "{\"name\":\"owner\"}\n{}\n{\"name\":null}\n";
    let pretty = "{\n\t\"name0\": \"owner0\",\n\t\"name1\": \"owner1\",\n}";
    check(
        "SELECT name from BlobStorage",
        &json_json,
        objects,
        names,
        0,
    );
    check(ALL, &json_json, pretty, &format!("{pretty}\n"), 0);
    check(ALL, JSON, pretty, "owner0,owner1\n", 0);
    check(ALL, JSON, NUMBERS, "\n", 1);
    check(ALL, JSON, "{name: owner}\n{}", "", 1);
}

/// QB2: the language, according to its reference.
#[test]
fn expressions_follow_the_language_reference() {
    let time = "CAST('1969-07-20T20:18Z' AS TIMESTAMP)";
    for (expression, expected) in [
        ("CHARACTER_LENGTH('abcdefg')", "7"),
        ("CHAR_LENGTH(_1)", "1"),
        ("LOWER('AbCdEfG')", "abcdefg"),
        ("UPPER('AbCdEfG')", "ABCDEFG"),
        ("SUBSTRING('123456789', 1, 5)", "23456"),
        ("SUBSTRING('123456789' FROM 6)", "789"),
        (
            "TRIM(BOTH '123' FROM '1112211Microsoft22211122')",
            "Microsoft",
        ),
        ("TRIM(LEADING FROM '  a ') ", "a "),
        ("TRIM(TRAILING 'x' FROM 'xax')", "xa"),
        ("TRIM('  a ')", "a"),
        (
            "DATE_ADD('minute', 1, CAST('2017-01-02T03:04:05.006Z' AS TIMESTAMP))",
            "2017-01-02T03:05:05.006Z",
        ),
        (
            "DATE_DIFF('hour','2018-11-09T00:00+05:30','2018-11-09T01:00:23-08:00')",
            "14",
        ),
        ("EXTRACT(YEAR FROM '2010-01-01T')", "2010"),
        (
            "EXTRACT(timezone_minute FROM '2010-01-01T00:00+05:30')",
            "30",
        ),
        (
            &format!("TO_STRING({time}, 'MMMM d, y')"),
            "\"July 20, 1969\"",
        ),
        ("TO_TIMESTAMP('2007T')", "2007-01-01T00:00:00Z"),
        ("UTCNOW()", "2026-11-21T12:00:00Z"),
        (
            "CAST('2020-02-28' AS TIMESTAMP) + 2",
            "2020-03-01T00:00:00Z",
        ),
        ("1 + 2 * 3 - -4", "11"),
        ("7 / 2", "3"),
        ("7 % 4 + 0.5", "3.5"),
        ("_1 * 2 + _2", "16"),
        ("6 AND 3", "2"),
        ("NULLIF(1, 1)", ""),
        ("COALESCE(NULL, NULL, 'x')", "x"),
        ("CASE WHEN _1 > 5 THEN 'big' ELSE 'small' END", "small"),
        ("CASE _2 WHEN '6' THEN 'six' END", "six"),
        ("_1 BETWEEN 5 AND 6", "true"),
        ("_2 NOT BETWEEN 5 AND 6", "false"),
        ("_1 IN (1, 5)", "true"),
        ("_1 NOT IN (1, NULL)", ""),
        ("'50%' LIKE '50!%' ESCAPE '!'", "true"),
        ("_9 IS MISSING", "true"),
        ("_1 IS NOT NULL AND NOT FALSE OR NULL", "true"),
        ("NULL = NULL", ""),
        ("CAST('12.5' AS FLOAT)", "12.5"),
        ("BlobStorage._1", "5"),
        ("\"_2\" AS \"six\"", "6"),
    ] {
        let query = format!("SELECT {expression} FROM BlobStorage");
        assert_eq!(
            ask(&query, CSV, "5,6\n"),
            (format!("{expected}\n"), 0),
            "{expression}"
        );
    }
}
