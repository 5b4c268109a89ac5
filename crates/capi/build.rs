//! The name that programs look for at run time. It changes with the C ABI, not with the project.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // how Cargo tells a build script the target, which need not be the machine that this runs on
    #[allow(clippy::disallowed_methods, reason = "a build script is told by its environment")]
    let target = std::env::var("CARGO_CFG_TARGET_OS");
    // the linker's word for it; elsewhere the file's own name is used
    if target.is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libflashatlas.so.1");
    }
}
