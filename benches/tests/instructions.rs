//! Costs of work in instructions, which do not depend on the load of the machine. valgrind counts
//! the instructions of each kernel of `benches/src/kernels.rs` at two counts. The cost of doing the
//! work once more, as a ratio to a calibration kernel, must be within 2 % of the ratio in
//! `benches/instructions.csv`.
//!
//! The number of instructions depends on the compiler. If the compiler differs from the compiler in
//! the file, nothing is compared, and a line reports this. `FLASHATLAS_WRITE=1 cargo test --release
//! -p flashatlas-benches --test instructions` writes the file again, and keeps the reasons. A
//! kernel that costs more than before needs a reason.
//!
//! Costs that must not grow are counted, too, for each structure of `benches/src/growth.rs` and
//! each of its sizes. `make test` runs only the first structure, `make test-full` all structures.

use flashatlas_fixtures::proofs::one_in;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const BENCH: &str = env!("CARGO_BIN_EXE_bench");
const TOLERANCE: f64 = 0.02;
/// Largest factor between the cost at any size of a structure and the cost at its least size.
const GROWTH: f64 = 1.3;

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.csv")
}

/// Prints a line that is visible even if the test passes.
fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("somebody listens");
}

/// Returns the text that a program prints, or `None` if the program does not exist. The program
/// must succeed.
fn printed(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{program} {}: {said}", arguments.join(" "));
    Some(said)
}

/// Returns the reason why instructions cannot be counted here, or `None`.
fn uncounted() -> Option<&'static str> {
    if cfg!(debug_assertions) {
        return Some("instructions: not counted where assertions are compiled in");
    }
    let missing = printed("valgrind", &["--version"]).is_none();
    missing.then_some("instructions: not counted, valgrind is not installed (Debian: valgrind)")
}

/// Returns the number that follows `name` in the text `said`.
fn number(said: &str, name: &str) -> f64 {
    let found = said.lines().find_map(|line| line.split_once(name));
    let number = found.and_then(|(_, number)| number.trim().parse().ok());
    number.unwrap_or_else(|| panic!("no `{name}`: {said}"))
}

/// Returns the text that a run of the program under valgrind prints.
fn under_valgrind(work: &[&str]) -> String {
    let run = [&["--tool=callgrind", "--callgrind-out-file=/dev/null", BENCH], work].concat();
    printed("valgrind", &run).expect("it is installed")
}

/// Returns the instructions of one run of a kernel.
fn counted(kernel: &str, count: u64) -> f64 {
    number(&under_valgrind(&["kernel", kernel, &count.to_string()]), "Collected : ")
}

/// Returns each kernel, and the cost of doing its work once more.
fn costs() -> Vec<(String, f64)> {
    let list = printed(BENCH, &["kernel"]).expect("the program was built with this test");
    let cost = |line: &str| {
        let mut words = line.split(' ');
        let kernel = words.next().expect("a name").to_owned();
        let [less, more] = [(); 2].map(|()| words.next().and_then(|n| n.parse().ok()).expect(line));
        let instructions = counted(&kernel, more) - counted(&kernel, less);
        (kernel, instructions / (more - less) as f64)
    };
    list.lines().map(cost).collect()
}

/// Returns the compiler that the file names, and each kernel with its ratio and the reason why the
/// ratio last rose.
fn held() -> (String, Vec<(String, f64, String)>) {
    let text = std::fs::read_to_string(file()).unwrap_or_default();
    let mut compiler = String::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# ") {
            compiler = name.to_owned();
        } else if let [kernel, ratio, reason] = line.splitn(3, ',').collect::<Vec<_>>()[..]
            && let Ok(ratio) = ratio.parse()
        {
            rows.push((kernel.to_owned(), ratio, reason.to_owned()));
        }
    }
    (compiler, rows)
}

#[test]
fn work_costs_as_many_instructions_as_before() {
    if let Some(why) = uncounted() {
        return say(why);
    }
    let compiler = printed("rustc", &["--version"]).unwrap_or_default().trim().to_owned();
    let (held_by, held) = held();
    let write = flashatlas_fixtures::written::is_asked_for();
    if compiler != held_by && !write {
        return say(&format!("instructions: not compared, `{compiler}` is not `{held_by}`"));
    }
    let costs = costs();
    let (calibration, unit) = &costs[0];
    let mut text = format!("# {compiler}\nkernel,instructions,reason\n");
    let mut moved = String::new();
    for (kernel, cost) in &costs {
        let ratio = 1000.0 * cost / unit;
        let before = held.iter().find(|(name, ..)| name == kernel);
        let reason = before.map_or("", |(.., reason)| reason);
        writeln!(text, "{kernel},{ratio:.1},{reason}").expect("a string takes everything");
        // a kernel that is not in the file has the ratio NaN, so it is reported as changed
        let was = before.map_or(f64::NAN, |&(_, was, _)| was);
        let near = (ratio / was - 1.0).abs() <= TOLERANCE;
        if !near {
            writeln!(moved, "{kernel}: {was:.1} is {ratio:.1} now").expect("as above");
        }
    }
    if write {
        std::fs::write(file(), text).expect("the file can be written");
    } else {
        assert!(
            moved.is_empty(),
            "thousandths of {calibration}, more than 2 % apart:\n{moved}If the new costs are \
             right: FLASHATLAS_WRITE=1 cargo test --release -p flashatlas-benches --test \
             instructions, and a reason in {} where it costs more",
            file().display()
        );
    }
}

/// Checks that the costs of a request, a flash operation, a lookup and a mount do not grow with
/// larger structures. The costs are counted in instructions, because the processor's caches would
/// hide or exaggerate growth in times.
#[test]
fn costs_do_not_grow_with_what_is_kept() {
    if let Some(why) = uncounted() {
        return say(why);
    }
    let list = printed(BENCH, &["growth"]).expect("the program was built with this test");
    for line in list.lines().step_by(one_in()) {
        let [name, less, more, sizes @ ..] = &line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}: a structure, two counts and its sizes were expected")
        };
        let costs: Vec<f64> =
            sizes.iter().map(|size| cost_of_one(name, size, less, more)).collect();
        let grown: Vec<f64> = costs.iter().map(|cost| cost / costs[0]).collect();
        say(&format!("{name} {sizes:?}: {costs:.0?} instructions, {grown:.2?} of the first"));
        assert!(costs[0] > 0.0 && grown.iter().all(|&g| g <= GROWTH), "{name} grows: {grown:.2?}");
    }
}

/// Returns the instructions of one additional operation at a size; the program counts operations.
fn cost_of_one(name: &str, size: &str, less: &str, more: &str) -> f64 {
    let [[fewer, few], [all, many]] = [less, more].map(|count| {
        let said = under_valgrind(&["growth", name, size, count]);
        [number(&said, "Collected : "), number(&said, "done ")]
    });
    (all - fewer) / (many - few)
}
