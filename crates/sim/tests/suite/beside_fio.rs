//! The real fio, where it is installed: what a job file comes to there.

use serde_json::Value;
use std::process::Command;

/// Returns what fio says of each job of a job file, which finds `files` (name, content) beside it;
/// `None` if there is no fio. `name` tells one call's folder from another's.
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
