//! Prints `flashatlas_plugin.h`, what `make header` writes.

#[path = "../tests/suite/generate.rs"]
mod generate;

fn main() {
    print!("{}", generate::header());
}
