//! Fuzzes `smalt_harness::fuzz::sockets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| smalt_fuzz::judge("sockets", input));
