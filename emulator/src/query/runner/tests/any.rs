//! Any query of any blob is answered or rejected, in well-formed frames of bounded size.

use super::*;

const WORDS: &[&str] = &[
    "SELECT",
    "*",
    "FROM",
    "BlobStorage",
    "BlobStorage[*]",
    "WHERE",
    "_1",
    "_2",
    "a",
    "b.c[0]",
    "(",
    ")",
    "NOT",
    "-",
    "+",
    "*",
    "/",
    "%",
    "AND",
    "OR",
    "'x'",
    "'%_'",
    "'2020T'",
    "1",
    "2.5",
    "NULL",
    "TRUE",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "CAST",
    "AS",
    "INT",
    "STRING",
    "TIMESTAMP",
    "[",
    "]",
    ".",
    ",",
    "=",
    "<",
    "<>",
    "LIKE",
    "ESCAPE",
    "IN",
    "BETWEEN",
    "IS",
    "MISSING",
    "LIMIT",
    "COUNT(*)",
    "MAX(",
    "UPPER(",
    "TRIM(BOTH",
    "SUBSTRING(",
    "COALESCE(",
    "NULLIF(",
    "DATE_ADD(day,",
    "TO_STRING(",
    "sys.split(10485760)",
    "é",
];

fn settings() -> impl Strategy<Value = String> {
    let formats = |side: &str| {
        let format = |inside: &str| format!("<{side}><Format>{inside}</Format></{side}>");
        vec![
            String::new(),
            format("<Type>json</Type>"),
            format("<Type>delimited</Type>"),
            format(
                "<Type>delimited</Type><DelimitedTextConfiguration><HasHeaders>true</HasHeaders>\
                 <ColumnSeparator>;</ColumnSeparator></DelimitedTextConfiguration>",
            ),
            format(
                "<Type>arrow</Type><ArrowConfiguration><Schema><Field><Type>string</Type>\
                 <Name>n</Name></Field><Field><Type>int64</Type></Field></Schema>\
                 </ArrowConfiguration>",
            ),
        ]
    };
    let input = prop::sample::select(formats("InputSerialization"));
    let output = prop::sample::select(formats("OutputSerialization"));
    (input, output).prop_map(|(input, output)| input + &output)
}

fn operand() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["_1", "_2", "1", "2", "NULL", "NULLIF(_1, '2')"])
}

fn blob() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[0-9a-c,;\"\n\\\\é]{0,60}".prop_map(String::into_bytes),
        "(\\{\"a\":[0-9]{1,3},\"b\":\\{\"c\":\\[\"[a-z%]{0,3}\",null\\]\\}\\}\n?){0,4}"
            .prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..60),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The last frame is the end, and the size of the response is proportional to query and blob.
    #[test]
    fn every_answer_ends(
        select in prop::sample::select(vec!["*", "_1", "a", "COUNT(*)", "UPPER(_1), a", "MIN(a)"]),
        words in prop::collection::vec(prop::sample::select(WORDS), 0..12),
        settings in settings(),
        blob in blob(),
        piece in 1_usize..70,
    ) {
        let words = words.join(" ");
        for query in [
            format!("SELECT {select} FROM BlobStorage WHERE {words}"),
            format!("SELECT {words} FROM BlobStorage"),
            format!("SELECT {select} FROM BlobStorage"),
        ] {
            let document = document(&query, &settings);
            let Ok(told) = run(&document, &blob, piece) else {
                continue;
            };
            prop_assert_eq!(told.last(), Some(&Told::End(blob.len() as u64)));
            let said: usize = told.iter().map(|told| match told {
                Told::Data(data) => data.len(),
                _ => 1,
            }).sum();
            prop_assert!(said < 2_000 + 200 * (1 + blob.len()) * query.len(), "{}", said);
            // If a query ends early, the piece that was read last counts as scanned.
            let without_progress = |told: Vec<Told>| -> Vec<Told> {
                let is_other = |told: &Told| !matches!(told, Told::Progress(..));
                told.into_iter().filter(is_other).collect()
            };
            let whole = without_progress(run(&document, &blob, 1_000).unwrap());
            prop_assert_eq!(without_progress(told), whole);
        }
    }

    /// A short form selects the rows of the comparisons that it stands for, also negated.
    #[test]
    fn short_forms_mean_their_comparisons(
        of in operand(), a in operand(), b in operand(), rows in "([0-3],[0-3]\n){1,9}",
    ) {
        for (short, long) in [
            (format!("{of} IN ({a}, {b})"), format!("{of} = {a} OR {of} = {b}")),
            (format!("{of} BETWEEN {a} AND {b}"), format!("{of} >= {a} AND {of} <= {b}")),
            (
                format!("CASE {of} WHEN {a} THEN TRUE ELSE {b} = 1 END"),
                format!("CASE WHEN {of} = {a} THEN TRUE ELSE {b} = 1 END"),
            ),
            (format!("NOT ({of} = {a} AND {of} = {b})"), format!("{of} <> {a} OR {of} <> {b}")),
            (format!("COALESCE({of}, {a}) = {b}"), format!(
                "CASE WHEN {of} IS NULL THEN {a} ELSE {of} END = {b}"
            )),
        ] {
            for not in ["", "NOT "] {
                let where_ = |form: &str| format!("SELECT * FROM BlobStorage WHERE {not}({form})");
                let [short, long] = [where_(&short), where_(&long)];
                let told = (ask(&short, CSV, &rows), ask(&long, CSV, &rows));
                prop_assert_eq!(&told.0, &told.1, "{} {}", short, long);
            }
        }
    }

    #[test]
    fn selected_rows_are_unchanged(rows in prop::collection::vec("[a-c0-9 é]{1,8}", 0..20)) {
        let csv: String = rows.iter().map(|row| format!("{row},\"{row}\"\n")).collect();
        let plain: String = rows.iter().map(|row| format!("{row},{row}\n")).collect();
        prop_assert_eq!(ask("SELECT * FROM BlobStorage", CSV, &csv), (plain, 0));
        let json: String = rows.iter().map(|row| format!("{{\"a\": \"{row}\"}}\n")).collect();
        let both = format!("{JSON}{TO_JSON}");
        prop_assert_eq!(ask("SELECT * FROM BlobStorage", &both, &json), (json.clone(), 0));
    }

    #[test]
    fn any_document_is_parsed_or_rejected(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "<QueryRequest>", "</QueryRequest>", "<QueryType>SQL</QueryType>",
                "<Expression>SELECT * FROM BlobStorage</Expression>", "<InputSerialization>",
                "</InputSerialization>", "<Format>", "</Format>", "<Type>json</Type>",
                "<Type>arrow</Type>", "<Type>parquet</Type>",
                "<ColumnSeparator>,</ColumnSeparator>",
                "<DelimitedTextConfiguration>", "</DelimitedTextConfiguration>", "&amp;", "&#0;",
                "<FieldQuote>ab</FieldQuote>", "<![CDATA[x]]>", "\u{0}", "é", "<!DOCTYPE a>",
            ]),
            0..14,
        ),
    ) {
        if let Err(refused) = QueryRequest::parse(parts.concat().as_bytes()) {
            prop_assert_eq!(refused.status(), 400);
        }
    }

    #[test]
    fn any_text_is_parsed_or_rejected(text in "\\PC{0,60}") {
        if let Err(refused) = crate::query::sql::parse(&format!("SELECT {text}")) {
            prop_assert_eq!(refused.status(), 400);
        }
    }
}
