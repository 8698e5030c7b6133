//! Fuzzes `smalt_harness::fuzz::control`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| smalt_fuzz::judge("control", input));
