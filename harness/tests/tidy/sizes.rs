//! Limits the length of files, functions and lines.
//!
//! A function's length relies on rustfmt's indentation: from the line of its `fn` to the closing
//! brace at the same indentation, both included.

use crate::finding::Finding;
use crate::tree::Source;

/// Maximum lines of a file.
pub(crate) const FILE_LINES_MAX: usize = 500;

/// Maximum lines of a function.
pub(crate) const FUNCTION_LINES_MAX: usize = 70;

/// Maximum columns of a line, as in rustfmt.toml.
pub(crate) const LINE_COLUMNS_MAX: usize = 100;

/// A limit from which a file can be exempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Lines of the file.
    File,
    /// Lines of a function.
    Function,
    /// Columns of a line.
    Line,
}

/// A file that is exempt from one size, and why. An exemption that is no longer needed is a
/// finding.
pub(crate) type Exempt = (&'static str, Size, &'static str);

/// Tables, which are easier to read with one line per row.
pub(crate) const EXEMPT: &[Exempt] = &[
    (
        "emulator/src/register/blob.rs",
        Size::Line,
        "one row per operation",
    ),
    (
        "emulator/src/register/data_lake.rs",
        Size::Line,
        "one row per operation",
    ),
    (
        "emulator/src/register/queue.rs",
        Size::Line,
        "one row per operation",
    ),
    (
        "emulator/src/register/table.rs",
        Size::Line,
        "one row per operation",
    ),
    (
        "protocol/src/error/table.rs",
        Size::Line,
        "one row per error code",
    ),
];

/// Maximum lines of code of the model's rules, without comments and blank lines. A model that grows
/// as complex as the emulator cannot check it. The search of the bursts uses the model as well.
pub(crate) const MODEL_LINES_MAX: usize = 1_830;
/// The same for the model of tables, which is independent of the rest.
pub(crate) const MODEL_TABLES_LINES_MAX: usize = 260;
/// The files of the model of tables.
const MODEL_TABLES: &str = "tables.rs";
/// The same for directories and the operations of the Data Lake interface.
pub(crate) const MODEL_LAKE_LINES_MAX: usize = 360;
const MODEL_LAKE: &str = "lake.rs";
/// Files of the model that are not rules: vocabulary, the form of answers, the lists of outcomes
/// and circumstances, dispatch, hints for generators, tests.
const MODEL_BESIDE: &[&str] = &[
    "vocabulary",
    "expected.rs",
    "outcomes",
    "matrix",
    "dispatch.rs",
    "hints.rs",
    "lib.rs",
    "tests.rs",
    "tables_tests.rs",
];
const MODEL_FOLDER: &str = "harness/model/src/";

/// Returns a finding if the rules of the model are too long.
pub(crate) fn model(sources: &[Source]) -> Vec<Finding> {
    let name = |source: &Source| source.path.strip_prefix(MODEL_FOLDER).map(str::to_owned);
    let rules: Vec<(String, &Source)> = sources
        .iter()
        .filter_map(|source| Some((name(source)?, source)))
        .filter(|(name, _)| !MODEL_BESIDE.iter().any(|beside| name.starts_with(beside)))
        .collect();
    let of = |file: &str| rules.iter().filter(|(name, _)| name == file).collect();
    let others = [MODEL_TABLES, MODEL_LAKE];
    let others = rules
        .iter()
        .filter(|(name, _)| !others.contains(&name.as_str()));
    let parts: [(Vec<_>, usize); 3] = [
        (others.collect(), MODEL_LINES_MAX),
        (of(MODEL_TABLES), MODEL_TABLES_LINES_MAX),
        (of(MODEL_LAKE), MODEL_LAKE_LINES_MAX),
    ];
    parts
        .into_iter()
        .filter_map(|(rules, most)| {
            let lines: usize = rules.iter().map(|(_, rule)| code_lines(rule)).sum();
            let told = format!("{lines} lines of rules; the limit is {most}");
            (lines == 0 || lines > most).then(|| Finding::new(MODEL_FOLDER, 0, told))
        })
        .collect()
}

/// Counts lines without comments and blank lines.
fn code_lines(source: &Source) -> usize {
    let is_code = |line: &&String| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("//")
    };
    source.lines.iter().filter(is_code).count()
}

/// Returns sizes above their limit, and stale exemptions.
pub(crate) fn judge(sources: &[Source], exempt: &[Exempt]) -> Vec<Finding> {
    let mut used = vec![false; exempt.len()];
    let mut findings = Vec::new();
    for source in sources {
        for (size, finding) in too_long(source) {
            match exempt
                .iter()
                .position(|e| e.0 == source.path && e.1 == size)
            {
                Some(at) => used[at] = true,
                None => findings.push(finding),
            }
        }
    }
    let unused = exempt.iter().zip(&used).filter(|(_, used)| !**used);
    findings.extend(unused.map(|((path, size, _), _)| {
        Finding::new(
            path,
            0,
            format!("is exempt from {size:?} but no longer needs it"),
        )
    }));
    findings
}

fn too_long(source: &Source) -> Vec<(Size, Finding)> {
    let mut found = Vec::new();
    let mut add = |size, line, what| found.push((size, Finding::new(&source.path, line, what)));
    let lines = source.lines.len();
    if lines > FILE_LINES_MAX {
        add(Size::File, 0, format!("{lines} lines"));
    }
    for function in functions(&source.code) {
        if function.lines > FUNCTION_LINES_MAX {
            let what = format!("fn {} has {} lines", function.name, function.lines);
            add(Size::Function, function.line, what);
        }
    }
    for (line, text) in (1..).zip(&source.lines) {
        let columns = text.chars().count();
        if columns > LINE_COLUMNS_MAX {
            add(Size::Line, line, format!("{columns} columns"));
        }
    }
    found
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of its `fn`, from 1.
    pub(crate) line: usize,
    /// Its length in lines.
    pub(crate) lines: usize,
}

/// Returns the functions of a source without comments and quotes. Declarations are excluded.
pub(crate) fn functions(code: &[String]) -> Vec<Function> {
    let named = code
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, name(line)?)));
    named
        .filter_map(|(at, name)| {
            let lines = length(&code[at..])?;
            let line = at + 1;
            Some(Function { name, line, lines })
        })
        .collect()
}

/// Returns the name of the function that starts in this line.
fn name(line: &str) -> Option<String> {
    const BEFORE: &[&str] = &["pub", "const", "async", "unsafe", "extern", "default"];
    let (before, after) = line.split_once("fn ")?;
    let is_qualifier = |word: &str| BEFORE.contains(&word) || word.starts_with(['(', '"', ')']);
    let spaced = before.replace('(', " (");
    // `pub(in a::b)` is the only qualifier of `fn` that contains a space.
    if !before.is_empty() && !before.ends_with([' ', '\t']) {
        return None;
    }
    if !spaced
        .split_whitespace()
        .all(|word| is_qualifier(word) || word.ends_with(')'))
    {
        return None;
    }
    let name: String = after
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    (!name.is_empty()).then_some(name)
}

/// Counts the lines up to the brace at the indentation of the first; `None` for a declaration.
fn length(code: &[String]) -> Option<usize> {
    let depth = indentation(&code[0]);
    for (at, line) in code.iter().enumerate() {
        let text = line.trim();
        if text.is_empty() || indentation(line) > depth {
            continue;
        }
        if text.ends_with(';') {
            return None;
        }
        if text.starts_with('}') || text.ends_with('}') {
            return Some(at + 1);
        }
    }
    None
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Formats the sizes of the tree, one per line.
pub(crate) fn report(sources: &[Source]) -> String {
    let files = sources.iter().map(|s| s.lines.len()).collect();
    let functions = sources
        .iter()
        .flat_map(|s| functions(&s.code))
        .map(|f| f.lines)
        .collect();
    format!(
        "files:     {}\nfunctions: {}",
        spread(files),
        spread(functions)
    )
}

fn spread(mut sizes: Vec<usize>) -> String {
    sizes.sort_unstable();
    let at = |percent: usize| sizes.get((sizes.len() * percent).div_ceil(100).saturating_sub(1));
    let [p50, p90, most] = [50, 90, 100].map(|percent| at(percent).copied().unwrap_or_default());
    format!("{} of p50 {p50}, p90 {p90}, max {most} lines", sizes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_grows_is_found() {
        let model_of = |lines: usize, tables: usize, lake: usize| {
            let text = |lines: usize| "let a = 1;\n// why\n\n".repeat(lines);
            model(&[
                Source::new("harness/model/src/blobs.rs", &text(lines)),
                Source::new("harness/model/src/tables.rs", &text(tables)),
                Source::new("harness/model/src/lake.rs", &text(lake)),
            ])
        };
        let (most, tables) = (MODEL_LINES_MAX, MODEL_TABLES_LINES_MAX);
        let lake = MODEL_LAKE_LINES_MAX;
        assert_eq!(model_of(most, tables, lake).len(), 0);
        assert_eq!(model_of(most + 1, tables, lake).len(), 1);
        assert_eq!(model_of(most, tables + 1, lake).len(), 1);
        assert_eq!(model_of(most, tables, lake + 1).len(), 1);
        assert_eq!(model(&[]).len(), 3, "no model at all");
    }

    fn measured(text: &str) -> Vec<(String, usize, usize)> {
        let source = Source::new("a.rs", text);
        functions(&source.code)
            .into_iter()
            .map(|f| (f.name, f.line, f.lines))
            .collect()
    }

    #[test]
    fn a_function_ends_at_its_brace() {
        let text = "\
trait A {
    fn declared(
        &self,
    ) -> u8;
    fn given(&self) {}
}
pub(crate) const fn one() -> u8 {
    let s = \"
}
\";
    1
}
impl A {
    pub(in a::b) async fn two(
        self,
    ) -> u8
    where
        Self: B,
    {
        fn inner() {
        }
        let f: fn (u8) = a;
    }
}
// fn commented() {}
";
        let expected = [
            ("given", 5, 1),
            ("one", 7, 6),
            ("two", 14, 10),
            ("inner", 20, 2),
        ];
        let expected = expected.map(|(name, line, lines)| (name.to_owned(), line, lines));
        assert_eq!(measured(text), expected);
    }

    fn planted() -> Source {
        let body = "    a();\n".repeat(FUNCTION_LINES_MAX - 1);
        let wide = format!("// {}\n", "x".repeat(LINE_COLUMNS_MAX - 2));
        let rest = "\n".repeat(FILE_LINES_MAX - FUNCTION_LINES_MAX - 1);
        Source::new("a.rs", &format!("fn long() {{\n{body}}}\n{wide}{rest}"))
    }

    #[test]
    fn sizes_above_the_limit_are_found() {
        let expected = [
            Finding::new("a.rs", 0, "501 lines"),
            Finding::new("a.rs", 1, "fn long has 71 lines"),
            Finding::new("a.rs", 72, "101 columns"),
        ];
        assert_eq!(judge(&[planted()], &[]), expected);
    }

    #[test]
    fn sizes_at_the_limit_are_not_found() {
        let body = "    a();\n".repeat(FUNCTION_LINES_MAX - 2);
        let wide = format!("// {}\n", "x".repeat(LINE_COLUMNS_MAX - 3));
        let rest = "\n".repeat(FILE_LINES_MAX - FUNCTION_LINES_MAX - 1);
        let text = format!("fn long() {{\n{body}}}\n{wide}{rest}");
        assert_eq!(text.lines().count(), FILE_LINES_MAX);
        assert_eq!(judge(&[Source::new("a.rs", &text)], &[]), []);
    }

    #[test]
    fn an_exemption_applies_to_one_size_and_can_be_stale() {
        let exempt = [
            ("a.rs", Size::Function, "a table"),
            ("b.rs", Size::Line, "a table"),
        ];
        let expected = [
            Finding::new("a.rs", 0, "501 lines"),
            Finding::new("a.rs", 72, "101 columns"),
            Finding::new("b.rs", 0, "is exempt from Line but no longer needs it"),
        ];
        assert_eq!(judge(&[planted()], &exempt), expected);
    }

    #[test]
    fn percentiles_use_the_nearest_rank() {
        assert_eq!(
            spread((1..=10).rev().collect()),
            "10 of p50 5, p90 9, max 10 lines"
        );
        assert_eq!(spread(vec![]), "0 of p50 0, p90 0, max 0 lines");
    }
}
