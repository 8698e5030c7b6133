//! Fuzzes `smalt_harness::fuzz::workers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| smalt_fuzz::judge("workers", input));
