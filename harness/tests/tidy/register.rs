//! Every built operation is in the register and has an example exchange in its file's header.

use crate::finding::Finding;
use crate::tree::Source;

const OPS: &str = "emulator/src/ops/";
const REGISTER: &str = "emulator/src/register/";
const METHODS: &[&str] = &[
    "GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "MERGE", "OPTIONS",
];

/// Returns operations without a line in the register, and files of operations without an example.
pub(crate) fn judge(sources: &[Source]) -> Vec<Finding> {
    let registered: Vec<_> = sources
        .iter()
        .filter(|s| s.path.starts_with(REGISTER))
        .flat_map(|s| s.code.iter().flat_map(|line| run_by(line)))
        .collect();
    let mut findings = Vec::new();
    for source in sources.iter().filter(|s| s.path.starts_with(OPS)) {
        let operations = operations(source);
        for (line, name) in &operations {
            let path = format!("{}::{name}", module(&source.path));
            if !registered.contains(&path) {
                let what = format!("the register has no line that runs {path}");
                findings.push(Finding::new(&source.path, *line, what));
            }
        }
        if !operations.is_empty() && !has_example(&source.lines) {
            let what = "its header has no ```http example with a request and a status line";
            findings.push(Finding::new(&source.path, 1, what));
        }
    }
    if registered.is_empty() {
        findings.push(Finding::new(REGISTER, 0, "runs nothing"));
    }
    findings
}

/// Returns `blob::put::PutBlob` for each `write::<blob::put::PutBlob>` or `read::<...>` in a line.
fn run_by(line: &str) -> Vec<String> {
    ["read::<", "write::<"]
        .iter()
        .flat_map(|call| line.split(call).skip(1))
        .filter_map(|rest| rest.split_once('>'))
        .map(|(path, _)| path.to_owned())
        .collect()
}

/// Returns line and name of the types that are operations.
fn operations(source: &Source) -> Vec<(usize, String)> {
    let end = source.tests_from() - 1;
    let code = source.code.iter().take(end);
    (1..)
        .zip(code)
        .filter_map(|(line, text)| Some((line, operation(text)?)))
        .collect()
}

fn operation(line: &str) -> Option<String> {
    let rest = line.strip_prefix("impl")?;
    let (of, name) = rest.split_once(" for ")?;
    if !["Read", "Write"]
        .iter()
        .any(|name| of.ends_with(&format!(" {name}")))
    {
        return None;
    }
    let name = name
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    Some(name.to_owned())
}

/// Returns `blob::put` for `emulator/src/ops/blob/put.rs`.
fn module(path: &str) -> String {
    let path = path.strip_prefix(OPS).unwrap_or(path);
    path.trim_end_matches(".rs").replace('/', "::")
}

/// Returns whether the header has an `http` block with a request line such as `PUT
/// /account/container/blob` and a status line such as `201 Created`.
fn has_example(lines: &[String]) -> bool {
    let header = lines.iter().map_while(|line| line.strip_prefix("//!"));
    let header: Vec<_> = header
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let Some(opens) = header.iter().position(|line| *line == "```http") else {
        return false;
    };
    let block = &header[opens + 1..];
    let Some(closes) = block.iter().position(|line| *line == "```") else {
        return false;
    };
    let block = &block[..closes];
    let request = block.iter().position(|line| is_request(line));
    request.is_some_and(|at| block[at + 1..].iter().any(|line| is_status(line)))
}

fn is_request(line: &str) -> bool {
    line.split_once(" /")
        .is_some_and(|(method, _)| METHODS.contains(&method))
}

fn is_status(line: &str) -> bool {
    let Some((code, reason)) = line.split_once(' ') else {
        return false;
    };
    let is_code = code.len() == 3 && code.parse::<u16>().is_ok_and(|code| code >= 100);
    is_code && reason.starts_with(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\
//! Put Blob.
//!
//! ```http
//! PUT /devstoreaccount1/cont/blob
//! Content-Length: 2
//!
//! 201 Created
//! ```
";

    fn found(header: &str, register: &str) -> Vec<String> {
        let text = format!("{header}\nimpl Write for PutBlob {{\n}}\nimpl Read for Other {{\n}}\n");
        let row = "op(read::<blob::put::Other>(), always),";
        let sources = [
            Source::new("emulator/src/ops/blob/put.rs", &text),
            Source::new(
                "emulator/src/register/blob.rs",
                &format!("{row}\n{register}\n"),
            ),
        ];
        judge(&sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_unregistered_operation_is_found() {
        let row = "op(write::<blob::put::PutBlob>()),";
        assert_eq!(found(HEADER, row), [""; 0]);
        let expected = "emulator/src/ops/blob/put.rs:10: the register has no line that runs \
                        blob::put::PutBlob";
        assert_eq!(
            found(HEADER, "op(write::<blob::put::PutBlobs>()),"),
            [expected]
        );
        assert_eq!(found(HEADER, &format!("// {row}")), [expected]);
    }

    #[test]
    fn a_header_without_a_complete_exchange_is_found() {
        let row = "op(write::<blob::put::PutBlob>()),";
        for (whole, broken) in [
            ("//! ```http\n", "//! ```text\n"),
            ("//! PUT /", "//! PUSH /"),
            ("//! 201 Created\n", ""),
            ("//! 201 Created\n", "//! 2010 Created\n"),
        ] {
            let header = HEADER.replace(whole, broken);
            assert_eq!(found(&header, row).len(), 1, "{broken}");
        }
    }

    #[test]
    fn an_impl_of_another_trait_is_not_an_operation() {
        assert_eq!(operation("impl std::fmt::Write for Out {"), None);
        assert_eq!(operation("impl Reader for Out {"), None);
        assert_eq!(
            operation("impl<T: Kind> Read for Get<T> {"),
            Some("Get".to_owned())
        );
    }
}
