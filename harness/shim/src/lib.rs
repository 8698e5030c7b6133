//! A library for `LD_PRELOAD` that intercepts a process's calls to the C library: it journals what
//! the process does to the files in one directory, and makes chosen calls fail.
//!
//! sled opens its files itself, so smalt has no interface through which a test could see its writes
//! and syncs. The crash test runs its child under this shim; from the journal
//! `harness/src/crash/image.rs` builds the states that a power loss could have left.
//!
//! | variable | |
//! | --- | --- |
//! | `SMALT_SHIM_DIR` | the watched directory; without it nothing is watched |
//! | `SMALT_SHIM_JOURNAL` | the journal is appended to this file, outside of the directory |
//! | `SMALT_SHIM_FAIL` | `call:ending:nth:how`: the calls that fail, see `plan` |
//!
//! # Layout
//! - [`hooks`]: the hooked functions of the C library.
//! - `journal`: the format of the journal, and its writer.
//! - `plan`: which calls fail, and how.
//! - `system`: the shim's own system calls, and with them all `unsafe` code outside the hooks.
//!
//! The library is empty on systems other than Linux.

#![cfg(target_os = "linux")]

pub mod hooks;
mod journal;
mod plan;
mod system;
