//! Results of job files in the real fio, if it is installed.

use serde_json::Value;
use std::process::Command;

/// Returns fio's results for each job of a job file, or `None` if there is no fio.
///
/// `files` are the names and contents of files beside the job file. `name` must differ between
/// calls, because it names their folder.
pub fn jobs_of_fio(name: &str, text: &str, files: &[(&str, &str)]) -> Option<Vec<Value>> {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (file, content) in [&[("job.fio", text)], files].concat() {
        std::fs::write(folder.join(file), content).unwrap();
    }
    let output = Command::new("fio")
        .args(["--output-format=json", "job.fio"])
        .current_dir(&folder)
        .output()
        .ok()?;
    std::fs::remove_dir_all(&folder).unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    found["jobs"].as_array().cloned()
}
