//! Sets the name under which programs look for the library at run time.
//!
//! The number in the name is the version of the C ABI, not of the project.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Cargo sets this variable to the target system, which may differ from the system of the build
    #[allow(clippy::disallowed_methods, reason = "a build script is told by its environment")]
    let target = std::env::var("CARGO_CFG_TARGET_OS");
    // on Linux the linker stores this name in the library; elsewhere programs look for the name of
    // the file
    if target.is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libflashatlas.so.1");
    }
}
