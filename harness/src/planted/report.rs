//! Renders the results for the terminal, as Markdown and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::run::{Done, Task};

/// Renders the table for a terminal, with failures last.
pub fn text(all: &[Done]) -> String {
    let mut text = String::new();
    for done in all {
        let Task::Bug(area, bug) = done.task else {
            continue;
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<9} {:<30} {:<12} {:>6} {:>14} {:>6.1} s",
            area.name(),
            bug.id,
            check(done),
            cases(done),
            shrunk(done),
            done.took.as_secs_f64()
        );
    }
    for done in all.iter().filter(|done| !done.is_good()) {
        let _ = writeln!(text, "FAILED {}: {}", done.task.name(), trouble(done));
    }
    let _ = writeln!(text, "{}", summary(all));
    text
}

/// Renders the table for `docs/planted.md`.
pub fn markdown(all: &[Done]) -> String {
    let mut text = String::from(
        "| bug | what is wrong | from | caught by | cases | shrunk to |\n\
         | --- | --- | --- | --- | ---: | --- |\n",
    );
    for done in all {
        if let Task::Bug(area, bug) = done.task {
            let _ = writeln!(
                text,
                "| {} `{}` | {} | {} | {} | {} | {} |",
                area.name(),
                bug.id,
                bug.wrong,
                bug.source,
                check(done),
                cases(done),
                shrunk(done)
            );
        }
    }
    text
}

/// Returns all results as JSON.
pub fn json(all: &[Done]) -> Value {
    let rows = all.iter().map(|done| {
        let (area, wrong, source) = match done.task {
            Task::Bug(area, bug) => (area.name(), &*bug.wrong, &*bug.source),
            Task::Control(_) => ("control", "Nothing.", ""),
            Task::Canary => ("canary", "Everything.", ""),
        };
        let last = done.last.as_ref();
        json!({
            "id": done.task.name(),
            "area": area,
            "wrong": wrong,
            "source": source,
            "good": done.is_good(),
            "check": last.map_or("", |(check, _)| check.name()),
            "verdict": last.ok().map(|(_, verdict)| verdict),
            "error": last.err(),
            "took_s": done.took.as_secs_f64(),
        })
    });
    json!({ "rows": rows.collect::<Vec<_>>(), "summary": summary(all) })
}

/// Summarizes the results in one line.
pub fn summary(all: &[Done]) -> String {
    let is_bug = |done: &&Done| matches!(done.task, Task::Bug(..));
    let bugs = all.iter().filter(is_bug).count();
    let caught = all.iter().filter(is_bug).filter(|d| d.is_good()).count();
    let is_control = |done: &&Done| matches!(done.task, Task::Control(_));
    let controls = all.iter().filter(is_control).count();
    let alarms = all.iter().filter(is_control).filter(|d| !d.is_good());
    let canary = all.iter().find(|done| done.task == Task::Canary);
    let canary = match canary.map(Done::is_good) {
        Some(true) => "heard",
        Some(false) => "NOT HEARD",
        None => "not asked",
    };
    format!(
        "{caught} of {bugs} planted bugs caught; {} false alarms of {controls} checks without a \
         bug; the canary is {canary}",
        alarms.count()
    )
}

fn check(done: &Done) -> &'static str {
    match &done.last {
        Ok((check, verdict)) if verdict.caught.is_some() => check.name(),
        _ => "NOT CAUGHT",
    }
}

fn cases(done: &Done) -> String {
    let verdict = done.last.as_ref().map(|(_, verdict)| verdict.cases);
    verdict.map_or_else(|_| "-".to_owned(), |cases| cases.to_string())
}

fn shrunk(done: &Done) -> String {
    let verdict = done.last.as_ref().ok();
    let caught = verdict.and_then(|(_, verdict)| verdict.caught.as_ref());
    let shrunk = caught.and_then(|caught| caught.shrunk.as_ref());
    shrunk.map_or_else(|| "-".to_owned(), |s| format!("{} {}", s.length, s.of))
}

fn trouble(done: &Done) -> String {
    match (&done.last, done.task) {
        (Err(error), _) => error.clone(),
        (Ok((check, verdict)), Task::Bug(_, bug)) if verdict.struck == 0 => format!(
            "{} did not come by its line in {} cases: {}",
            check.name(),
            verdict.cases,
            bug.wrong
        ),
        (Ok((check, verdict)), Task::Bug(_, bug)) => format!(
            "{} came by its line {} times in {} cases and saw nothing: {}",
            check.name(),
            verdict.struck,
            verdict.cases,
            bug.wrong
        ),
        (Ok((_, verdict)), Task::Control(_)) => {
            let what = verdict.caught.as_ref().map(|caught| caught.what.as_str());
            format!("an alarm without a bug: {}", what.unwrap_or_default())
        }
        (Ok(_), Task::Canary) => "the check that always fails was not heard".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use smalt_planted::{Area, Detector};

    use super::*;
    use crate::planted::detect::{Caught, Check, Shrunk, Verdict};

    fn done(task: Task, caught: bool) -> Done {
        let caught = caught.then(|| Caught {
            what: "200 in place of 412".to_owned(),
            shrunk: Some(Shrunk::operations(3)),
            story: String::new(),
        });
        let verdict = Verdict {
            cases: 17,
            caught,
            struck: 5,
        };
        Done {
            task,
            last: Ok((Check::Detector(Detector::Histories), verdict)),
            took: Duration::from_millis(1_500),
        }
    }

    /// A bug that is not caught, a check that fails without a bug, and a canary that does not fail
    /// are all failures.
    #[test]
    fn every_kind_of_failure_is_reported() {
        let bug = Task::Bug(Area::Emulator, &Area::Emulator.bugs()[0]);
        let control = Task::Control(Detector::Histories);
        let good = [
            done(bug, true),
            done(control, false),
            done(Task::Canary, true),
        ];
        assert!(good.iter().all(Done::is_good));
        let told = text(&good);
        assert!(told.contains("1 of 1 planted bugs caught; 0 false alarms of 1"));
        assert!(told.contains("3 operations") && told.ends_with("the canary is heard\n"));
        assert!(!told.contains("FAILED"));

        let bad = [
            done(bug, false),
            done(control, true),
            done(Task::Canary, false),
        ];
        assert!(!bad.iter().any(Done::is_good));
        let told = text(&bad);
        assert!(told.contains("0 of 1 planted bugs caught; 1 false alarms of 1"));
        assert!(told.contains("came by its line 5 times in 17 cases and saw nothing"));
        assert!(told.contains("FAILED histories: an alarm without a bug: 200 in place of 412"));
        assert!(told.contains("NOT HEARD"));
        let broken = Done {
            last: Err("no such file".to_owned()),
            ..done(bug, true)
        };
        assert!(!broken.is_good());
        assert!(text(&[broken]).contains("no such file"));
    }

    #[test]
    fn each_row_names_its_bug_once() {
        let bug = Task::Bug(Area::Emulator, &Area::Emulator.bugs()[0]);
        let page = markdown(&[done(bug, true), done(Task::Canary, true)]);
        assert_eq!(page.lines().count(), 3);
        assert_eq!(page.matches(&format!("`{}`", bug.name())).count(), 1);
        let rows = json(&[done(bug, true)]);
        assert_eq!(rows["rows"][0]["verdict"]["caught"]["shrunk"]["length"], 3);
    }
}
