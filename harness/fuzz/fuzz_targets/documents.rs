//! Fuzzes `smalt_harness::fuzz::documents`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| smalt_fuzz::judge("documents", input));
