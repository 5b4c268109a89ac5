//! Tests that compilers accept the headers.

use crate::build;

#[test]
fn c_and_cpp_take_headers_and_example_without_a_warning() {
    let include = |name: &str| format!("#include <{name}>\n");
    for (compiler, name, text, standard) in [
        ("cc", "a.c", include("flashatlas_plugin.h"), "-std=c99"),
        ("cc", "page.c", build::example("page.c"), "-std=c99"),
        ("c++", "a.cc", include("flashatlas_plugin.h"), "-std=c++11"),
        ("c++", "b.cc", include("flashatlas_plugin.hpp"), "-std=c++17"),
    ] {
        let strict = [standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-c"];
        build::with(compiler, name, &text, &strict).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}
