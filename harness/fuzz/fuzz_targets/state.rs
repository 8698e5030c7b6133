//! Fuzzes `smalt_harness::fuzz::state`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| smalt_fuzz::judge("state", input));
