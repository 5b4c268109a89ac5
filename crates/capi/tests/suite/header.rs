//! Tests that compilers accept the headers.

use crate::build::{compiles, here};

/// A program that both defines a plug-in policy and runs a simulated drive includes both sets of
/// headers.
#[test]
fn c_and_cpp_take_the_headers_without_a_warning_and_those_of_plugins_beside_them() {
    let own = here().join("include");
    let plugins = here().join("../../python/flashatlas/include");
    let include = [own.as_path(), plugins.as_path()];
    let both = "#include <flashatlas.h>\n#include <flashatlas_plugin.h>\n\
                const fa_plugin *flashatlas_plugin(void) { return 0; }\n";
    compiles("cc", "-std=c99", "a.c", both, &include);
    compiles("cc", "-std=c17", "a.c", both, &include);
    compiles("c++", "-std=c++11", "a.cc", "#include <flashatlas.hpp>\n", &include);
    let both = "#include <flashatlas.hpp>\n#include <flashatlas_plugin.hpp>\n";
    compiles("c++", "-std=c++17", "a.cc", both, &include);
}
