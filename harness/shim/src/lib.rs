//! A library for `LD_PRELOAD` that stands between a process and the C library: it writes down what
//! the process does to the files below one directory, and makes chosen calls fail.
//!
//! sled opens its files itself, so no seam of ours sees what it writes and what it syncs. The crash
//! test runs its child under this shim; from the journal `harness/src/crash/image.rs` builds what
//! a loss of power could have left.
//!
//! | variable | |
//! | --- | --- |
//! | `SMALT_SHIM_DIR` | files below it are watched; without it nothing is |
//! | `SMALT_SHIM_JOURNAL` | the journal is appended to this file, outside of the directory |
//! | `SMALT_SHIM_FAIL` | `call:ending:nth:how`: what fails, see `plan` |
//!
//! # Layout
//! - [`hooks`]: the functions of the C library that are replaced.
//! - `journal`: the form of the journal, and its writer.
//! - `plan`: which calls fail, and how.
//! - `system`: the calls to the kernel; all reasons for `unsafe` beside the hooks themselves.
//!
//! It is empty on other systems than Linux.

#![cfg(target_os = "linux")]

pub mod hooks;
mod journal;
mod plan;
mod system;
