//! Writes a copy of the workspace that contains every planted bug, each behind its switch.
//!
//!     smalt-planted DIR      from the root of the tree; files that git ignores are not copied
//!
//! Files of the copy that are up to date are not written, so that cargo does not rebuild them.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a program that writes files and talks to its caller"
)]

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use smalt_planted::patch;

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1) else {
        eprintln!("usage: smalt-planted DIR");
        return ExitCode::FAILURE;
    };
    match copy(Path::new(&dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write the copy with the planted bugs: {error}");
            ExitCode::FAILURE
        }
    }
}

fn copy(to: &Path) -> Result<(), Box<dyn Error>> {
    let all = ours()?;
    let switched = patch::files();
    let manifests: BTreeSet<String> = switched.iter().map(|file| manifest_of(file)).collect();
    let mut wrong = Vec::new();
    for missing in switched.iter().filter(|file| !all.contains(**file)) {
        wrong.push(format!(
            "{missing} does not exist, but fixtures/planted changes it"
        ));
    }
    for file in &all {
        let mut content = fs::read(file)?;
        if switched.contains(file.as_str()) {
            match patch::switched(file, &String::from_utf8(content)?) {
                Ok(changed) => content = changed.into_bytes(),
                Err(more) => {
                    wrong.extend(more);
                    continue;
                }
            }
        } else if manifests.contains(file) {
            content = patch::manifest(&String::from_utf8(content)?)?.into_bytes();
        }
        let target = to.join(file);
        if fs::read(&target).is_ok_and(|there| there == content) {
            continue;
        }
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&target, content)?;
        fs::set_permissions(&target, fs::metadata(file)?.permissions())?;
    }
    if !wrong.is_empty() {
        return Err(wrong.join("\n").into());
    }
    remove_others(to, Path::new(""), &all)
}

/// Returns the manifest of the crate that a source file belongs to.
fn manifest_of(source: &str) -> String {
    let (folder, _) = source.split_once("/src/").unwrap_or((source, ""));
    format!("{folder}/Cargo.toml")
}

/// Returns the files of the tree that git tracks or does not ignore.
fn ours() -> Result<BTreeSet<String>, Box<dyn Error>> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .output()?;
    if !listed.status.success() {
        return Err(String::from_utf8_lossy(&listed.stderr).into());
    }
    let names = String::from_utf8(listed.stdout)?;
    let names = names.split_terminator('\0');
    // git lists deleted files until the deletion is committed.
    Ok(names
        .filter(|name| Path::new(name).is_file())
        .map(str::to_owned)
        .collect())
}

/// Removes files of an earlier copy that are no longer in the tree.
fn remove_others(to: &Path, below: &Path, all: &BTreeSet<String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(to.join(below))? {
        let entry = entry?;
        let within = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(to, &within, all)?;
        } else if !all.contains(within.to_string_lossy().as_ref()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
