//! The header, made of `src/abi.rs`.

/// Its text.
pub fn header() -> String {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("it is there");
    let made = cbindgen::Builder::new().with_src(here.join("src/abi.rs")).with_config(config);
    let mut text = Vec::new();
    made.generate().expect("abi.rs has C types").write(&mut text);
    String::from_utf8(text).expect("it was made of text")
}
