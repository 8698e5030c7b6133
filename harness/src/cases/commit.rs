//! The commit that the running program was built from, according to git.

use std::path::Path;
use std::time::SystemTime;

use tokio::process::Command;

use crate::servers::files;

/// A line that only this package's manifest has.
const PACKAGE: &str = concat!("name = \"", env!("CARGO_PKG_NAME"), "\"");
/// Path of that manifest in the project.
const MANIFEST: &str = "harness/Cargo.toml";

/// Returns the commit checked out where the running program is, if that is a work tree of this
/// project.
pub(super) async fn of_this_program() -> Option<String> {
    of(&std::env::current_exe().ok()?).await
}

async fn of(program: &Path) -> Option<String> {
    let root = git(program.parent()?, &["rev-parse", "--show-toplevel"]).await?;
    let root = Path::new(&root);
    let manifest = files::text(&root.join(MANIFEST)).ok()?;
    if !manifest.lines().any(|line| line == PACKAGE) {
        return None;
    }
    let head = git(root, &["log", "-1", "--format=%h %ct"]).await?;
    let (commit, committed_s) = head.split_once(' ')?;
    let is_changed = !git(root, &["status", "--porcelain"]).await?.is_empty();
    let changed = if is_changed { " with changes" } else { "" };
    let is_later = committed_s.parse::<u64>().ok()? > made_s(program)?;
    let later = if is_later {
        ", made after this program"
    } else {
        ""
    };
    Some(format!("{commit}{changed}{later}"))
}

/// Returns when a file was written, in seconds of the Unix epoch.
fn made_s(program: &Path) -> Option<u64> {
    let made = program.metadata().ok()?.modified().ok()?;
    let since = made.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}

async fn git(dir: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(arguments);
    // A git hook sets these for another repository.
    command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    let output = command.output().await.ok()?;
    let text = || String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then(text)
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::replay::corpus;

    const LONG_AGO: &str = "2001-01-01T00:00:00Z";
    const FAR_AHEAD: &str = "2090-01-01T00:00:00Z";

    /// Commits everything, at this time.
    async fn commit(dir: &Path, date: &str) -> Option<()> {
        git(dir, &["add", "--all"]).await?;
        let mut command = Command::new("git");
        command.arg("-C").arg(dir);
        command.args(["-c", "user.name=one", "-c", "user.email=one@example.com"]);
        command.args(["-c", "commit.gpgsign=false", "commit", "--quiet"]);
        command.args(["--message", "One", "--allow-empty"]);
        command.env("GIT_COMMITTER_DATE", date);
        let status = command.status().await.ok()?;
        status.success().then_some(())
    }

    #[tokio::test]
    async fn commit_is_that_of_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        if git(root, &["init", "--quiet"]).await.is_none() {
            eprintln!("NOT RUN: git is not installed");
            return;
        }
        let program = root.join("target/debug/harness");
        corpus::write(&program, "").unwrap();
        corpus::write(&root.join(".gitignore"), "target\n").unwrap();
        let manifest = root.join(MANIFEST);
        corpus::write(&manifest, "[package]\nname = \"other\"\n").unwrap();
        commit(root, LONG_AGO).await.unwrap();
        assert_eq!(of(&program).await, None, "somebody else's project");

        corpus::write(&manifest, &format!("[package]\n{PACKAGE}\n")).unwrap();
        commit(root, LONG_AGO).await.unwrap();
        let head = git(root, &["rev-parse", "--short", "HEAD"]).await.unwrap();
        assert_eq!(of(&program).await, Some(head.clone()));
        corpus::write(&root.join("more"), "").unwrap();
        assert_eq!(of(&program).await, Some(format!("{head} with changes")));

        commit(root, FAR_AHEAD).await.unwrap();
        let head = git(root, &["rev-parse", "--short", "HEAD"]).await.unwrap();
        let later = format!("{head}, made after this program");
        assert_eq!(of(&program).await, Some(later));
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(of(&elsewhere.path().join("harness")).await, None);
    }
}
