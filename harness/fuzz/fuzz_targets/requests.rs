//! Fuzzes `smalt_harness::fuzz::requests`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| smalt_fuzz::judge("requests", input));
