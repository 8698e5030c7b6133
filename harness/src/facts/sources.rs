//! The answers of the emulator that are judged: to the cases, the traces and some histories.

use std::path::Path;
use std::sync::Arc;

use crate::cases::{file, suite};
use crate::diff::scripts::{self, Histories};
use crate::replay::corpus;
use crate::replay::player;
use crate::target::bent::Bent;
use crate::target::in_process::InProcess;
use crate::wire::{Answer, Request};

/// Histories, from the seed 0: enough to reach what they reach at all.
const HISTORIES: Histories = Histories {
    seed: 0,
    count: 120,
    tables: 40,
    operations: 60,
    wait_s_max: u64::MAX,
};
/// Prefix of the names of containers, queues and tables.
const PREFIX: &str = "facts";

/// Receives exchanges.
pub type Observer = Arc<dyn Fn(&Request, &Answer) + Send + Sync>;

/// Sends all requests to emulators in this process, and shows each exchange.
pub async fn observe(fixtures: &Path, observer: &Observer) -> anyhow::Result<()> {
    for folder in ["conform", "emulator"] {
        for case in file::read(&fixtures.join("cases").join(folder))? {
            suite::play(&watched(InProcess::open()?, observer), &case, PREFIX).await;
        }
    }
    for dir in
        ["traces", "azurite", "traces-azurite", "regressions"].map(|name| fixtures.join(name))
    {
        for name in corpus::names(&dir)? {
            let target = watched(InProcess::default(), observer);
            player::play(Arc::new(target), &corpus::load(&dir, &name)?).await;
        }
    }
    let histories = scripts::histories(&HISTORIES).await;
    for script in histories.map_err(anyhow::Error::msg)? {
        for one in &script.recording.interactions {
            observer(&one.request, &one.response);
        }
    }
    Ok(())
}

/// An emulator whose exchanges the observer sees.
fn watched(inner: InProcess, observer: &Observer) -> Bent<InProcess> {
    let observer = Arc::clone(observer);
    Bent::new(inner, move |request, answer| {
        observer(request, answer);
        None
    })
}
