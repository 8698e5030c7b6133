//! Files of cases.
//!
//! ```text
//! @service blob
//!
//! == a block blob comes back as it was put
//! @source Put Blob; Get Blob
//!
//! PUT {c}/b
//! x-ms-blob-type: BlockBlob
//! | hello
//! -> 201
//! etag ~ etag
//! first := etag
//!
//! GET {c}/b
//! -> 200
//! body = hello
//! etag == {first}
//! ```
//!
//! Blank lines separate blocks. `==` begins a case; each following block is a step: a request and,
//! from `->` on, the expectations of its answer ([`super::expect`]) and the values to keep
//! (`name := place`). A step without `->` must succeed.
//!
//! The request line has a method and the path below the account, or an operation of the register,
//! which determines method, `restype` and `comp`; `MERGE Table_MergeEntity ...` gives both. `RAW`
//! sends the body as the whole request. A line of the body begins with `|`; one with `||` ends in
//! CR LF. `\r`, `\n`, `\t`, `\0`, `\s` (a space) and `\\` are escapes in all strings; forms in
//! braces are expanded ([`super::values`]). `{c}`, `{c2}`, `{q}`, `{q2}`, `{t}` and `{t2}`
//! (containers, queues, tables) are created before the first step and removed after the last. `#`
//! begins a comment.
//!
//! Options apply to the file, the case or the step in whose block they are:
//!
//! | option | meaning |
//! | --- | --- |
//! | `@service blob` | the service that receives the requests |
//! | `@source Put Blob` | the documents that require the behaviour |
//! | `@version 2021-12-02`, `none` | `x-ms-version` |
//! | `@by nobody` | how requests are authorized ([`super::auth`]) |
//! | `@needs clock https` | abilities that the target must have |
//! | `@settings {"versioning":true}` | account settings |
//! | `@bare c2` | is not created in advance |
//! | `@wait 15` | seconds to wait before the request |
//! | `@secondary` | the request goes to the account's secondary endpoint |
//! | `@fault {"kind":"reset"}` | fault to plan for the request |
//! | `@bytes` | the request is sent as written, on a separate connection |
//! | `@length none` | `Content-Length` of such a request |
//! | `@then finish`, `leave` | the client closes its side, or the connection, after sending |
//!
//! Lines that begin with `+` form a table: names, then rows of values. The block is repeated for
//! each row, with `{name}` replaced and ` && ` as a line break; empty lines are dropped. A table
//! below `==` repeats the whole case.

use std::path::Path;

use super::block::{Block, blocks, rows};
use super::case::Case;
use super::step::Said;
use crate::servers::files;

/// Extension of case files.
pub const EXTENSION: &str = "case";
/// Why cases cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file or the directory cannot be read.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// A block is invalid.
    #[error("{area}: {case:?}, step {step}: {problem}")]
    Block {
        /// Area of the file.
        area: String,
        /// Name of the case.
        case: String,
        /// Index of the step, from 1; 0 for the case itself.
        step: usize,
        /// What is invalid.
        problem: String,
    },
    /// Two cases have the same name.
    #[error("two cases have the name {0:?}")]
    Twice(String),
}

/// Reads all case files of a directory.
///
/// # Errors
/// When a file cannot be read or is invalid, or two cases have the same name.
pub fn read(dir: &Path) -> Result<Vec<Case>, FileError> {
    let texts = files::texts(dir, EXTENSION)
        .map_err(|error| FileError::Io(dir.display().to_string(), error))?;
    let files = texts.iter();
    collect(files.map(|(area, text)| (area.as_str(), text.as_str())))
}

/// Parses the cases of several files, each with its name.
///
/// # Errors
/// When a file is invalid, or two cases have the same name.
pub fn collect<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<Case>, FileError> {
    let mut all: Vec<Case> = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for (file, text) in files {
        for case in parse(&file.replace('_', " "), text)? {
            if !names.insert(case.name.clone()) {
                return Err(FileError::Twice(case.name));
            }
            all.push(case);
        }
    }
    Ok(all)
}

/// Parses the cases of one file.
pub fn parse(area: &str, text: &str) -> Result<Vec<Case>, FileError> {
    let wrong = |case: &str, step, problem| FileError::Block {
        area: area.to_owned(),
        case: case.to_owned(),
        step,
        problem,
    };
    let mut said = Said::default();
    let mut cases: Vec<Vec<Block>> = Vec::new();
    for block in blocks(text) {
        if block.iter().any(|line| line.starts_with("== ")) {
            cases.push(vec![block]);
        } else if let Some(case) = cases.last_mut() {
            case.push(block);
        } else {
            for line in &block {
                said.take(line).map_err(|problem| wrong("", 0, problem))?;
            }
        }
    }
    let mut read = Vec::new();
    for case in cases {
        let [head, ..] = &case[..] else { continue };
        let rows = rows(head).map_err(|problem| wrong("", 0, problem))?;
        for row in rows {
            let blocks: Vec<Block> = case.iter().map(|block| row.fill(block)).collect();
            let title = blocks.iter().flatten().find_map(|l| l.strip_prefix("== "));
            let title = title.unwrap_or_default().to_owned();
            let one = one(area, &title, &said, &blocks);
            read.push(one.map_err(|(step, problem)| wrong(&title, step, problem))?);
        }
    }
    Ok(read)
}

fn one(area: &str, title: &str, of_file: &Said, blocks: &[Block]) -> Result<Case, (usize, String)> {
    let mut said = of_file.clone();
    let (head, rest) = blocks.split_first().ok_or((0, "no case".to_owned()))?;
    for line in head.iter().filter(|line| !line.starts_with("== ")) {
        said.take(line).map_err(|problem| (0, problem))?;
    }
    let service = said.service.ok_or((0, "@service is missing".to_owned()))?;
    let mut case = Case {
        name: title.to_owned(),
        area: area.to_owned(),
        service,
        source: said.source.clone(),
        needs: said.needs.clone(),
        settings: said.settings.clone(),
        makes: Vec::new(),
        removes: Vec::new(),
        steps: Vec::new(),
    };
    for (at, block) in (1..).zip(rest) {
        for row in rows(block).map_err(|problem| (at, problem))? {
            let step = said.step(&row.fill(block));
            case.steps.push(step.map_err(|problem| (at, problem))?);
        }
    }
    let bare: Vec<&str> = said.bare.iter().map(String::as_str).collect();
    case.complete(&bare);
    Ok(case)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Ability;

    const TEXT: &str = "@service blob
@source Put Blob

# A comment.
== one
@bare c2

@wait 1
Blob_SetTier {c}/b?snapshot={s}
-> 200
tier := x-ms-access-tier

Container_Create {c2}
-> 409 ContainerAlreadyExists

PUT {c}/b
x-ms-blob-type: BlockBlob
| a\\tb
| c
-> {answer}
+ answer | unused
+ 201 | 1
+ 409 && no etag | 2
";

    /// The register determines method and query, and the case creates what it uses.
    #[test]
    fn file_is_parsed() {
        let case = parse("a", TEXT).unwrap().remove(0);
        let [tier, create, put, refused] = &case.steps[..] else {
            panic!("{case:?}");
        };
        assert_eq!(
            (tier.method.as_str(), tier.path.as_str()),
            ("PUT", "{c}/b?comp=tier&snapshot={s}")
        );
        assert_eq!(
            (tier.keeps.len(), create.path.as_str()),
            (1, "{c2}?restype=container")
        );
        assert!(tier.succeeds() && !create.succeeds());
        assert_eq!((case.makes, case.removes), (vec!["c"], vec!["c", "c2"]));
        assert_eq!(case.needs, [Ability::Clock]);
        assert_eq!(case.source, "Put Blob");
        assert_eq!(put.body.as_deref(), Some("a\tb\nc"));
        assert_eq!((put.expects.len(), refused.expects.len()), (1, 2));
        assert_eq!(refused.operation_id(), "");
    }

    #[test]
    fn case_is_repeated_for_each_row_of_its_table() {
        let text = "@service queue\n\n== {what} is made\n+ what\n+ a\n+ b\n\nPUT {what}\n|| x\n||";
        let cases = parse("a", text).unwrap();
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["a is made", "b is made"]);
        assert_eq!(cases[1].steps[0].path, "b");
        assert_eq!(cases[1].steps[0].body.as_deref(), Some("x\r\n\r\n"));
    }

    /// An error says where the mistake is.
    #[test]
    fn mistakes_are_reported_with_their_place() {
        for (right, wrong, said) in [
            (
                "Blob_SetTier",
                "Blob_SetTear",
                "step 1: Blob_SetTear is neither",
            ),
            ("-> 200", "-> fine", "step 1: invalid expectation: fine"),
            ("@service blob", "@service file", "blob, queue or table"),
            ("@wait", "@weight", "unknown option: @weight 1"),
            ("tier :=", "t :=", "step 1: t is a predefined value"),
            ("tier :=", "sas :=", "step 1: sas is a predefined value"),
            ("| 2", "| 2 | 3", "step 3: 3 values in a table of 2 columns"),
            (
                "x-ms-blob-type: BlockBlob",
                "nothing",
                "step 3: not a header: nothing",
            ),
        ] {
            let error = parse("a", &TEXT.replace(right, wrong)).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
        let twice = collect([("a", TEXT), ("b", TEXT)]).unwrap_err();
        assert_eq!(twice.to_string(), "two cases have the name \"one\"");
    }
}
