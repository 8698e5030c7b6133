//! libFuzzer defines the callback of `-sanitizer-coverage-trace-pc` only to reject it. The linker
//! takes the first definition, which is the counting one of this crate.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,-z,muldefs");
}
