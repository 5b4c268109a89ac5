//! Functions that install the library and compile programs against it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Returns the folder of this crate.
pub fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the path of an example.
pub fn example(name: &str) -> PathBuf {
    here().join("examples_c").join(name)
}

/// Returns the folder in which the library is installed for these tests, as by `make capi`.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<TempDir> = OnceLock::new();
    PREFIX.get_or_init(install).path()
}

fn install() -> TempDir {
    let prefix = TempDir::new().expect("a temporary folder");
    // Cargo puts the library into the same folder as the test
    let test = std::env::current_exe().expect("this program is a file");
    let built = test.parent().expect("a file is in a folder");
    let script = here().join("install.sh");
    succeeds(Command::new("sh").arg(script).args([built, prefix.path()]));
    prefix
}

/// Runs a command, which must succeed. Returns its output.
pub fn succeeds(command: &mut Command) -> String {
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{out}\n{err}");
    out.into_owned()
}

/// Compiles a source against the library and runs it. Returns its output. A warning is an error.
pub fn run(compiler: &str, source: &Path, more: &[&str], arguments: &[&str]) -> String {
    let folder = TempDir::new().expect("a temporary folder");
    let program = folder.path().join("program");
    let lib = prefix().join("lib");
    succeeds(
        Command::new(compiler)
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(prefix().join("include"))
            .arg(source)
            .arg("-o")
            .arg(&program)
            .arg("-L")
            .arg(&lib)
            .arg("-lflashatlas")
            .args(more),
    );
    succeeds(Command::new(program).args(arguments).env("LD_LIBRARY_PATH", lib))
}

/// Compiles a source without running it.
pub fn compiles(compiler: &str, standard: &str, name: &str, text: &str, include: &[&Path]) {
    let folder = TempDir::new().expect("a temporary folder");
    let source = folder.path().join(name);
    std::fs::write(&source, text).expect("a temporary file");
    let mut command = Command::new(compiler);
    command.args([standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-c", "-o"]);
    command.arg(folder.path().join("object")).arg(source);
    for path in include {
        command.arg("-I").arg(path);
    }
    succeeds(&mut command);
}
