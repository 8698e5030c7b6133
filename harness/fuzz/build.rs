//! libFuzzer defines the callback of `-sanitizer-coverage-trace-pc` to refuse it. The linker takes
//! the first definition, which is the one of this crate that counts.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,-z,muldefs");
}
