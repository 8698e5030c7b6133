//! Pure functions on values. They do no I/O and read no clock.

pub mod acl;
pub mod block_list;
pub mod conditions;
pub mod cors;
pub mod encryption;
pub mod event_filter;
pub mod events;
pub mod host;
pub mod immutability;
pub mod lease;
pub mod page_tier;
pub mod pages;
pub mod pending_copy;
pub mod ranges;
pub mod sequence_number;
pub mod subscription;
pub mod tag_condition;
pub mod tag_parser;
pub mod tag_query;
pub mod tags;
pub mod tier;
pub mod web;
