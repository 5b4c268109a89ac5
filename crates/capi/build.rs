//! Name of the library that programs look for at run time.
//!
//! The number in it is the version of the C ABI, not of the project.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Cargo names the target here; the build script itself may run on another machine
    #[allow(clippy::disallowed_methods, reason = "a build script is told by its environment")]
    let target = std::env::var("CARGO_CFG_TARGET_OS");
    // on Linux the linker sets this name; elsewhere programs look for the name of the file
    if target.is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libflashatlas.so.1");
    }
}
