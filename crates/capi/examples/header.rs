//! Prints `flashatlas.h`, what `make capi-header` writes.

#[path = "../tests/suite/generate.rs"]
mod generate;

fn main() {
    print!("{}", generate::header());
}
