//! The check: whether the tables are consistent with each other and with the requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::plan::Plan;
use super::site::{BLOGS, CHANNELS, Site, WRITERS, is_valid};
use super::tables::{Row, TableResult, Tables, text};
use super::writer;

const PAGE: usize = 1000;

/// The contents of tables and queue after all processes have ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// Channels by name, and whether each is valid.
    pub(crate) channels: BTreeMap<String, bool>,
    /// Blogs by channel.
    pub(crate) blogs: BTreeMap<String, BTreeSet<String>>,
    /// Writers, and the number of each one's current blog.
    pub(crate) writers: BTreeMap<String, u32>,
    /// Number of messages in the queue.
    pub(crate) waiting: u64,
}

/// The faults that were found; consistent tables have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Requests that are not done.
    pub(crate) waiting: u64,
    /// Blogs without a valid channel, each with its channel.
    pub(crate) orphans: Vec<String>,
    /// Requested channels that still exist.
    pub(crate) left: Vec<String>,
    /// Channels that are deleted or marked although nobody requested it.
    pub(crate) lost: Vec<String>,
    /// Missing blogs of channels that nobody requested to delete.
    pub(crate) missing: Vec<String>,
}

/// Reads tables and queue.
pub(crate) async fn read(site: &Site) -> anyhow::Result<Found> {
    let mut found = Found {
        waiting: site.waiting().await?,
        ..Found::default()
    };
    for channel in all(&site.tables, CHANNELS).await? {
        let name = text(&channel, "PartitionKey").to_owned();
        found.channels.insert(name, is_valid(&channel));
    }
    for blog in all(&site.tables, BLOGS).await? {
        let channel = text(&blog, "PartitionKey").to_owned();
        let blogs = found.blogs.entry(channel).or_default();
        blogs.insert(text(&blog, "RowKey").to_owned());
    }
    for progress in all(&site.tables, WRITERS).await? {
        let name = text(&progress, "PartitionKey").to_owned();
        found.writers.insert(name, writer::next(&progress));
    }
    Ok(found)
}

/// Returns all entities of a table.
async fn all(tables: &Tables, table: &str) -> TableResult<Vec<Row>> {
    let mut rows = Vec::new();
    let mut from = None;
    loop {
        let page = tables.page(table, None, PAGE, from.as_ref()).await?;
        rows.extend(page.rows);
        match page.next {
            Some(next) => from = Some(next),
            None => return Ok(rows),
        }
    }
}

impl Found {
    /// Returns the faults: every blog must have a valid channel, every requested channel must be
    /// gone, and every other channel must be complete, including the blogs of the writers.
    pub(crate) fn faults(&self, plan: &Plan) -> Faults {
        let requested = plan.requested();
        let mut faults = Faults {
            waiting: self.waiting,
            ..Faults::default()
        };
        for (channel, blogs) in &self.blogs {
            if self.channels.get(channel) != Some(&true) {
                let orphans = blogs.iter().map(|blog| format!("{channel}: {blog}"));
                faults.orphans.extend(orphans);
            }
        }
        for channel in plan.channels() {
            let stands = self.channels.get(&channel);
            match (requested.contains(&channel), stands) {
                (true, Some(_)) => faults.left.push(channel),
                (false, None | Some(false)) => faults.lost.push(channel),
                _ => {}
            }
        }
        let at_first = plan.channels();
        let at_first = at_first.iter().flat_map(|channel| plan.blogs(channel));
        let writers = self.writers.iter();
        let written = writers.flat_map(|(writer, next)| {
            let blog = move |number| plan.written(writer, number);
            (0..*next).map(blog)
        });
        for blog in at_first.chain(written) {
            let blogs = self.blogs.get(&blog.channel);
            let stands = blogs.is_some_and(|blogs| blogs.contains(&blog.created_on));
            if !stands && !requested.contains(&blog.channel) {
                let missing = format!("{}: {}", blog.channel, blog.created_on);
                faults.missing.push(missing);
            }
        }
        faults
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blogs: usize = self.blogs.values().map(BTreeSet::len).sum();
        let written: u32 = self.writers.values().sum();
        let channels = self.channels.len();
        write!(
            f,
            "{channels} channels, {blogs} blogs; writers tried {written}"
        )
    }
}

impl fmt::Display for Faults {
    /// Writes one line: the number of each fault, with its first example.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            ("blogs without a valid channel", &self.orphans),
            ("requested channels that still exist", &self.left),
            ("channels deleted without a request", &self.lost),
            ("blogs missing from other channels", &self.missing),
        ];
        let mut told: Vec<String> = Vec::new();
        if self.waiting > 0 {
            told.push(format!("requests not done: {}", self.waiting));
        }
        for (what, which) in kinds {
            if let Some(first) = which.first() {
                told.push(format!("{what}: {}, such as {first:?}", which.len()));
            }
        }
        f.write_str(&told.join("; "))
    }
}
