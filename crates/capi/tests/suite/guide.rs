//! Tests that the program in the how-to does what the text says.

use crate::build::{here, run};
use serde_json::Value;

#[test]
fn the_program_of_the_how_to_runs() {
    let page = here().join("../../docs/howto/embed-a-drive.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> =
        page.split("```c\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 1, "one program");
    let folder = tempfile::TempDir::new().unwrap();
    let source = folder.path().join("program.c");
    std::fs::write(&source, blocks[0]).unwrap();
    let output = run("cc", &source, &["-std=c99", "-pedantic"], &[]);
    let (first, record) = output.split_once('\n').unwrap();
    assert!(first.starts_with("1000 writes in "), "{first}");
    let record: Value = serde_json::from_str(record).unwrap();
    assert_eq!(record["config"]["ftl.victim"], "cost-benefit");
    assert_eq!(record["commands"]["write"]["completed"], 1000);
}
