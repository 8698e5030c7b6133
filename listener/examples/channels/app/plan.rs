//! The plan: the channels and blogs, the channels to delete, and the blogs that writers add
//! meanwhile. Everything is a function of the seed, so that the correct final state is known
//! beforehand.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::json;
use smalt_protocol::Timestamp;

use super::tables::{Row, row};

/// 2026-01-01 00:00:00, the creation time of the first blog.
const FIRST_UNIX_S: u64 = 1_767_225_600;
/// Seconds between two blogs of a channel. The blogs of writers are in between.
const APART_S: u64 = 60;

/// The size of the example, and its seed.
#[derive(Args, Clone, Debug)]
pub(crate) struct Plan {
    /// Seed of the plan.
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Number of channels.
    #[arg(long, global = true, default_value_t = 20)]
    pub(crate) channels: u32,
    /// Largest number of blogs that a channel has at first.
    #[arg(long, global = true, default_value_t = 1000)]
    pub(crate) blogs: u32,
    /// Number of channels to delete.
    #[arg(long, global = true, default_value_t = 12)]
    pub(crate) requested: u32,
    /// Number of blogs per writer.
    #[arg(long, global = true, default_value_t = 1000)]
    pub(crate) written: u32,
}

/// A blog: its channel, and the properties that identify it there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Blog {
    pub(crate) channel: String,
    /// The RowKey, a time.
    pub(crate) created_on: String,
}

impl Plan {
    /// Returns the names of all channels. Some contain characters that need escaping in URLs and
    /// filters.
    pub(crate) fn channels(&self) -> Vec<String> {
        let name = |number: u32| match number % 4 {
            1 => format!("été {number:03}: 50 % & more"),
            3 => format!("rock 'n' roll + {number:03}"),
            _ => format!("channel-{number:03}"),
        };
        (0..self.channels).map(name).collect()
    }

    /// Returns the names of the channels to delete.
    pub(crate) fn requested(&self) -> BTreeSet<String> {
        let mut drawn: Vec<_> = (0_u64..).zip(self.channels()).collect();
        drawn.sort_by_key(|(number, _)| self.dice(1, *number));
        let drawn = drawn.into_iter().take(self.requested as usize);
        drawn.map(|(_, name)| name).collect()
    }

    /// Returns the initial blogs of a channel.
    pub(crate) fn blogs(&self, channel: &str) -> Vec<Blog> {
        let named = channel
            .bytes()
            .fold(0, |sum, byte| mix(sum ^ u64::from(byte)));
        let count = 1 + self.dice(2, named) % u64::from(self.blogs.max(1));
        let blog = |number| Blog {
            channel: channel.to_owned(),
            created_on: at(number * APART_S),
        };
        (0..count).map(blog).collect()
    }

    /// Returns a writer's blog with this number. Its time lies among those of the others, so that
    /// it may be before the position of a running deletion.
    pub(crate) fn written(&self, writer: &str, number: u32) -> Blog {
        let named = writer
            .bytes()
            .fold(3, |sum, byte| mix(sum ^ u64::from(byte)));
        let dice = self.dice(named, u64::from(number));
        let channel = (dice % u64::from(self.channels.max(1))) as usize;
        let after_s = (dice >> 32) % (u64::from(self.blogs.max(1)) * APART_S);
        Blog {
            channel: self.channels().swap_remove(channel),
            created_on: format!("{} {writer} {number:06}", at(after_s)),
        }
    }

    fn dice(&self, kind: u64, number: u64) -> u64 {
        mix(self.seed ^ mix(kind ^ mix(number)))
    }
}

impl Blog {
    pub(crate) fn row(&self) -> Row {
        let (channel, created_on) = (&self.channel, &self.created_on);
        row(json!({
            "PartitionKey": channel,
            "RowKey": created_on,
            "Title": format!("News of {channel}"),
            "Blog": format!("What happened in {channel} at {created_on}"),
            "UserId": format!("author-of-{channel}"),
        }))
    }

    pub(crate) fn keys(&self) -> (&str, &str) {
        (&self.channel, &self.created_on)
    }
}

fn at(after_s: u64) -> String {
    Timestamp::from_unix_s(FIRST_UNIX_S + after_s).iso_s()
}

/// SplitMix64.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
