//! Compares `docs/operations.md` with the register that generates it, and rewrites it on request.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fmt::Write as _;
use std::path::Path;

use smalt::Service;
use smalt::register::{self, Entry, OPERATIONS};

/// When this variable is set, the test rewrites the document instead of comparing it.
const REWRITE: &str = "SMALT_WRITE_DOCS";

const HEAD: &str = "\
# Operations

Look up whether smalt has an operation, and its id for [fault rules](control.md) and `/metrics`.
The tables list every operation that Azure Storage documents for the three services.
An operation that is not built answers 501 `NotImplemented` with its name.

This page is generated from the register (`emulator/src/register/`).
After a change there, run:

    SMALT_WRITE_DOCS=1 cargo test -p smalt --test service operations_doc::

";

#[test]
fn operations_table_matches_the_register() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md");
    let expected = document();
    if std::env::var_os(REWRITE).is_some() {
        write(&path, &expected);
        return;
    }
    let found = read(&path);
    assert!(
        found == expected,
        "docs/operations.md is stale: \
         {REWRITE}=1 cargo test -p smalt --test service operations_doc::"
    );
}

#[test]
fn readme_has_the_same_figures() {
    let readme = include_str!("../../README.md");
    assert!(readme.contains(&totals()), "expected:\n{}", totals());
}

fn document() -> String {
    let mut text = String::from(HEAD);
    text.push_str(&totals());
    for service in Service::ALL {
        write_service(&mut text, service);
    }
    text
}

fn totals() -> String {
    let mut text = String::from("| service | built | of |\n| --- | --- | --- |\n");
    for service in Service::ALL {
        let (built, all) = count(|entry| entry.service == service);
        writeln!(text, "| {} | {built} | {all} |", service.as_str()).unwrap();
    }
    let (built, all) = count(|_| true);
    assert_eq!(all, OPERATIONS);
    writeln!(text, "| all | {built} | {all} |").unwrap();
    text
}

fn write_service(text: &mut String, service: Service) {
    let name = service.as_str();
    let title = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
    writeln!(text, "\n## {title}\n").unwrap();
    text.push_str("| operation | id | |\n| --- | --- | --- |\n");
    for entry in register::all().filter(|entry| entry.service == service) {
        let state = if entry.is_built() { "built" } else { "501" };
        writeln!(text, "| {} | `{}` | {state} |", entry.title, entry.id).unwrap();
    }
}

fn count(of: impl Fn(&Entry) -> bool) -> (usize, usize) {
    let entries: Vec<_> = register::all().filter(|entry| of(entry)).collect();
    let built = entries.iter().filter(|entry| entry.is_built()).count();
    (built, entries.len())
}

#[expect(clippy::disallowed_methods, reason = "the test's subject is a file")]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "the test's subject is a file")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}
