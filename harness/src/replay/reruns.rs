//! Recordings with several runs of their test: each run is played from a fresh state.

use std::collections::BTreeSet;

use super::creation::creates;
use super::recording::{Interaction, Recording};
use crate::wire::url::Url;

/// Shortest pause in seconds between two runs. A recorder that found a file appended the next run
/// to it. The runs are hours or months apart; no test of the corpus waits that long.
const RERUN_GAP_S: u64 = 3_600;

/// Returns the indexes at which the runs in a recording begin; the first is 0.
///
/// A new run begins where something is created that exists and was never deleted: the account was
/// cleaned or replaced in between. The longest pause before that creation is the border.
pub fn starts(recording: &Recording) -> Vec<usize> {
    let mut starts = vec![0];
    let mut alive = BTreeSet::new();
    for (index, interaction) in recording.interactions.iter().enumerate() {
        if let Some(deleted) = deletes(interaction) {
            alive.remove(&deleted);
        }
        let Some((account, name)) = created(interaction) else {
            continue;
        };
        let last = starts.last().copied().unwrap_or_default();
        if !alive.insert((account.clone(), name.clone()))
            && let Some(border) = longest_pause(recording, last, index)
        {
            starts.push(border);
            // What the new run created before this creation exists in it.
            let since = recording.interactions[border..=index].iter();
            alive = since.filter_map(created).collect();
        }
    }
    starts
}

/// Splits a recording into its runs, each with the flags and notes of the original.
pub fn split(recording: &Recording) -> Vec<Recording> {
    let starts = starts(recording);
    let ends = starts
        .iter()
        .skip(1)
        .copied()
        .chain([recording.interactions.len()]);
    let runs = starts.iter().zip(ends);
    runs.map(|(start, end)| Recording {
        interactions: recording.interactions[*start..end].to_vec(),
        ..recording.without_interactions()
    })
    .collect()
}

/// Returns the index after the longest pause in `(after, until]`, if it is long enough to separate
/// two runs.
fn longest_pause(recording: &Recording, after: usize, until: usize) -> Option<usize> {
    let pause = |index: usize| {
        let (now, before) = (
            &recording.interactions[index],
            &recording.interactions[index - 1],
        );
        now.date.since(before.date).as_secs()
    };
    let border = (after + 1..=until).max_by_key(|index| pause(*index))?;
    (pause(border) >= RERUN_GAP_S).then_some(border)
}

/// Returns what a request created; for a queue that exists with the same metadata, the answer is
/// 204.
pub(super) fn created(interaction: &Interaction) -> Option<(String, String)> {
    let status = interaction.response.status;
    let table = interaction.request.method == "POST";
    if status != 201 && !(table && status == 204) {
        return None;
    }
    creates(interaction).map(|(account, name)| (account, name.to_lowercase()))
}

/// Returns what a request deleted.
pub(super) fn deletes(interaction: &Interaction) -> Option<(String, String)> {
    let request = &interaction.request;
    if request.method != "DELETE" || interaction.response.status >= 300 {
        return None;
    }
    let url = Url::parse(&request.url)?;
    let (account, _) = url.account_and_service()?;
    let [segment] = url.segments().try_into().ok()?;
    let name = match segment.strip_prefix("Tables('") {
        Some(rest) => rest.trim_end_matches("')").to_owned(),
        None => segment,
    };
    Some((account.to_owned(), name.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    /// Each letter is a request for queue `q` of one account: create, delete, look, wait.
    fn starts_of(script: &str) -> Vec<usize> {
        let mut day = 1;
        let mut lines = Vec::new();
        for letter in script.chars() {
            let (method, status) = match letter {
                'c' => ("PUT", 201),
                'd' => ("DELETE", 204),
                'l' => ("GET", 200),
                _ => {
                    day += 1;
                    continue;
                }
            };
            let url = "https://account.queue.core.windows.net/q".to_owned();
            let date = format!("Thu, {day:02} May 2019 00:57:59 GMT");
            lines.push((method, url, status, vec![("Date", date)]));
        }
        let recording = samples::recording("queue", &lines);
        let split: Vec<usize> = split(&recording)
            .iter()
            .map(|r| r.interactions.len())
            .collect();
        assert_eq!(split.iter().sum::<usize>(), recording.interactions.len());
        starts(&recording)
    }

    #[test]
    fn a_run_begins_where_an_existing_resource_is_created_after_a_pause() {
        for (script, expected) in [
            ("", vec![0]),
            ("cld", vec![0]),
            ("cl_cl", vec![0, 2]),
            ("cl_lc", vec![0, 2]),
            ("cld_cld", vec![0]),
            ("clcl", vec![0]),
            ("c_l", vec![0]),
            ("c_c_c", vec![0, 1, 2]),
        ] {
            assert_eq!(starts_of(script), expected, "{script}");
        }
    }
}
