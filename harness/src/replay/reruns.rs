//! Recordings that hold several runs of their test: each is played from a fresh state.

use std::collections::BTreeSet;

use super::recording::{Interaction, Recording};
use super::settings::creates;
use crate::wire::url::Url;

/// A recorder that found a file appended the next run to it. The runs lie hours or months apart; no
/// test of the corpus waits that long.
const RERUN_GAP_S: u64 = 3_600;

/// The runs in a recording, as the indices at which they begin; the first is 0.
///
/// A run begins anew where something is created that is there already and never was deleted: the
/// account between was another one, or was cleaned. The longest pause before that is the border.
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
            // What the new run made before this creation is alive in it.
            let since = recording.interactions[border..=index].iter();
            alive = since.filter_map(created).collect();
        }
    }
    starts
}

/// The runs as recordings of their own, with the flags and notes of the whole.
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

/// The index after the longest pause in `(after, until]`, if that is one between two runs.
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

/// What a request created; a queue that was there already with the same metadata answers 204.
pub(super) fn created(interaction: &Interaction) -> Option<(String, String)> {
    let status = interaction.response.status;
    let table = interaction.request.method == "POST";
    if status != 201 && !(table && status == 204) {
        return None;
    }
    creates(interaction).map(|(account, name)| (account, name.to_lowercase()))
}

/// What a request deleted.
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

    /// Each letter is a request to queue `q` of one account: create, delete, look, wait.
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
        let recording = samples::recording("queue", &[], &lines);
        let split: Vec<usize> = split(&recording)
            .iter()
            .map(|r| r.interactions.len())
            .collect();
        assert_eq!(split.iter().sum::<usize>(), recording.interactions.len());
        starts(&recording)
    }

    #[test]
    fn a_run_begins_where_what_is_there_is_created_after_a_pause() {
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
