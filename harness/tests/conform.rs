//! The conformance suite against the emulator in this process: it passes, covers every operation,
//! and detects wrong answers.

#[path = "conform/bends.rs"]
mod bends;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use smalt_harness::cases::case::Case;
use smalt_harness::cases::checks::{Outcome, Played};
use smalt_harness::cases::expect::Aspect;
use smalt_harness::cases::faults;
use smalt_harness::cases::report::{FORMAT, Of, Report, html, markdown};
use smalt_harness::cases::suite::{self, Plan};
use smalt_harness::target::bent::Bent;
use smalt_harness::target::in_process::InProcess;
use smalt_harness::target::{About, Target, TargetError};
use smalt_harness::wire::{Answer, Request};

static STOPPED: AtomicBool = AtomicBool::new(false);

const PLAN: Plan<'static> = Plan {
    prefix: "conform-test",
    progress: &|| {},
    stopped: &STOPPED,
};

async fn run(target: &dyn Target, scenarios: &[Case]) -> Vec<Played> {
    suite::run(target, scenarios, &PLAN).await
}

fn unmet(played: &[Played]) -> Vec<String> {
    let mut unmet = Vec::new();
    for scenario in played {
        if let Some(why) = &scenario.skipped {
            unmet.push(format!("{}: skipped: {why}", scenario.name));
        }
        for (call, check) in scenario.checks() {
            if check.outcome != Outcome::Passed {
                unmet.push(format!("{}: {}: {check:?}", scenario.name, call.request));
            }
        }
    }
    unmet
}

/// Every scenario passes in process as it does over a socket, and none is skipped.
#[tokio::test]
async fn the_emulator_conforms_in_process() {
    let scenarios = suite::scenarios().unwrap();
    let target = InProcess::open().unwrap();
    let unmet = unmet(&run(&target, &scenarios).await);
    assert!(unmet.is_empty(), "{}", unmet.join("\n"));
    // Tables are included, although their names have no dashes.
    assert_eq!(suite::sweep(&target, "conform").await, Ok(0), "left behind");
}

/// Every built operation is called, every aspect is checked, and every file is part of the suite.
#[test]
fn the_suite_is_wide() {
    let scenarios = suite::scenarios().unwrap();
    assert_eq!(suite::uncovered(&scenarios), Vec::<String>::new());
    let steps = scenarios.iter().flat_map(|scenario| &scenario.steps);
    let mut stated: BTreeMap<Aspect, usize> = BTreeMap::new();
    for expect in steps.flat_map(|step| &step.expects) {
        *stated.entry(expect.aspect).or_default() += 1;
    }
    assert!(stated.values().sum::<usize>() >= 1_200, "{stated:?}");
    assert!(stated.len() == Aspect::ALL.len() && stated.values().all(|count| *count >= 60));
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cases/conform");
    let read = smalt_harness::cases::file::read(&dir).unwrap();
    assert_eq!(
        read.len(),
        scenarios.len(),
        "a file in {dir:?} is missing from suite::FILES"
    );
    let unsourced = scenarios
        .iter()
        .filter(|scenario| scenario.source.is_empty());
    assert_eq!(unsourced.count(), 0);
}

/// Each wrong answer is detected, in the aspect in which it is wrong.
#[tokio::test]
async fn a_wrong_answer_is_detected() {
    let scenarios = suite::scenarios().unwrap();
    let bends = bends::all();
    assert!(bends.len() >= 20);
    for (what, area, aspect, bend) in bends {
        let of_area = scenarios.iter().filter(|scenario| scenario.area == area);
        let of_area: Vec<Case> = of_area.cloned().collect();
        assert!(!of_area.is_empty(), "{area}");
        let target = Bent::new(InProcess::open().unwrap(), bend);
        let played = run(&target, &of_area).await;
        let checks = played.iter().flat_map(Played::checks);
        let seen = checks
            .filter(|(_, check)| check.outcome == Outcome::Failed && check.aspect == aspect)
            .count();
        assert!(seen > 0, "{what} is not detected");
    }
}

/// Every fault hits every operation and has the expected outcome.
#[tokio::test]
async fn every_fault_has_the_expected_outcome() {
    let scenarios = suite::scenarios().unwrap();
    let target = InProcess::open().unwrap();
    let hits = faults::map(&target, &scenarios, &PLAN).await.unwrap();
    let wrong: Vec<_> = hits.iter().filter(|hit| !hit.right).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let operations: std::collections::BTreeSet<_> = hits
        .iter()
        .map(|hit| (&hit.service, &hit.operation))
        .collect();
    let built = smalt::register::all()
        .filter(|entry| entry.is_built())
        .count();
    assert_eq!(operations.len(), built);
    // An operation whose answer was lost shows its effect when it is repeated.
    let shown = hits
        .iter()
        .filter(|hit| hit.kind == faults::Kind::AnswerLost && !hit.repeatable);
    assert!(shown.count() >= 5);
}

/// A target that ignores planned faults.
struct Careless(InProcess);

#[async_trait::async_trait]
impl Target for Careless {
    fn about(&self) -> &About {
        self.0.about()
    }

    async fn call(&self, request: Request) -> Result<Answer, TargetError> {
        self.0.call(request).await
    }

    fn now(&self) -> smalt::Timestamp {
        self.0.now()
    }

    async fn plan(&self, _rule: &smalt::faults::Rule) -> Result<(), TargetError> {
        Ok(())
    }

    async fn fired(&self) -> Result<u64, TargetError> {
        self.0.fired().await
    }
}

/// A fault that did not occur is detected; otherwise an empty result would pass.
#[tokio::test]
async fn a_fault_that_did_not_occur_is_detected() {
    let scenarios = suite::scenarios().unwrap();
    let of_area = scenarios
        .into_iter()
        .filter(|scenario| scenario.area == "messages");
    let of_area: Vec<Case> = of_area.filter(|one| one.needs.is_empty()).collect();
    let target = Careless(InProcess::open().unwrap());
    let hits = faults::map(&target, &of_area, &PLAN).await.unwrap();
    assert!(
        hits.len() >= 6 * 6 && hits.iter().all(|hit| !hit.right),
        "{hits:#?}"
    );
}

async fn report() -> Report {
    let scenarios = suite::scenarios().unwrap();
    let of_area: Vec<Case> = scenarios
        .into_iter()
        .filter(|scenario| ["blobs", "copies", "messages"].contains(&scenario.area.as_str()))
        .collect();
    let target = Bent::new(InProcess::open().unwrap(), |_, answer| {
        let mut answer = answer.clone();
        answer.headers.set("etag", "<script>alert('x')</script>");
        Some(answer)
    });
    let played = run(&target, &of_area).await;
    let mut of = Of::new(target.about(), "x", played);
    of.name = "a <b> & \"c\"".to_owned();
    of.faults = Some(Vec::new());
    Report {
        format: FORMAT,
        harness: "0".to_owned(),
        date: "2027-01-15T08:00:00Z".to_owned(),
        command: "harness conform".to_owned(),
        commit: Some("0123abc".to_owned()),
        targets: vec![of.clone(), of],
    }
}

/// The page loads no other file, and a target's name and answers are escaped in it.
#[tokio::test]
async fn the_page_needs_no_other_file() {
    let report = report().await;
    assert!(!report.targets[0].is_right());
    let page = html::page(&report, &[]);
    for foreign in ["<script", "src=", "href=", "url(", "@import", "a <b> &"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)"));
    for part in [
        "<svg",
        "prefers-color-scheme",
        "<caption>",
        "scope=\"row\"",
        "Fault map",
        "0, commit 0123abc",
    ] {
        assert!(page.contains(part), "{part}");
    }
    balanced(&page);
}

/// Checks that every opened element is closed, in order.
fn balanced(page: &str) {
    const VOID: [&str; 4] = ["meta", "br", "!doctype", "line"];
    let style = page.find("<style>").unwrap()..page.find("</style>").unwrap();
    let text = format!("{}{}", &page[..style.start], &page[style.end + 8..]);
    let mut open: Vec<String> = Vec::new();
    for tag in text.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        let name: String = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap()
            .into();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<String>::new());
}

/// No report contains credentials.
#[tokio::test]
async fn reports_contain_no_secrets() {
    let report = report().await;
    let json = serde_json::to_string(&report).unwrap();
    let all = [
        json.clone(),
        markdown::page(&report, &[]),
        html::page(&report, &[]),
    ];
    for text in all {
        assert!(!text.contains(smalt_protocol::connection_string::EMULATOR_ACCOUNT_KEY));
        assert!(!text.contains("SharedKey"));
        let signatures = text.split("sig=").skip(1);
        for signature in signatures {
            assert!(signature.starts_with("REDACTED"), "{signature:.40}");
        }
    }
    let back: Report = serde_json::from_str(&json).unwrap();
    assert_eq!(back.targets[0].total(), report.targets[0].total());
}
