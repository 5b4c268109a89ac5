//! Types of the options for Python, and for the schema of the record.
//!
//! Type checkers read source files, so these texts cannot be made when Python starts. A test
//! compares the texts with the table, and `FLASHATLAS_WRITE=1 cargo test -p flashatlas-sim options`
//! writes them.

use super::{OPTIONS, OptionGroup, OptionKind, Recorded, RunOption};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Module with the keyword arguments of a run.
const ARGUMENTS: &str = "running/api.py";
/// Module with the type of the record, and the schema of the record.
const RECORD: [&str; 2] = ["record.py", "record.schema.json"];

/// Lines around a text that is made from the table.
const MARKS: [&str; 2] = [
    "    # begin: made from crates/sim/src/options\n",
    "    # end: made from crates/sim/src/options\n",
];

/// Returns the keyword arguments with their types, as keys of a `TypedDict`.
pub(super) fn arguments(options: &[RunOption]) -> String {
    let line = |option: &RunOption| format!("    {}: {}\n", option.name, argument(option));
    options.iter().map(line).collect()
}

fn argument(option: &RunOption) -> String {
    let kind = match option.kind {
        OptionKind::File => {
            // besides a path, Python accepts a `Trace` or `Job`: a file with its settings
            let (first, rest) = option.name.split_at(1);
            format!("str | os.PathLike[str] | {}{rest}", first.to_uppercase())
        }
        OptionKind::Text => "str".to_owned(),
        OptionKind::Count(_) | OptionKind::Number => "int".to_owned(),
        OptionKind::CountOr(_) => "int | str".to_owned(),
        OptionKind::Factor => "float".to_owned(),
        OptionKind::Flag => "bool".to_owned(),
        OptionKind::Choice(words) if takes_a_file(words) => "str".to_owned(),
        OptionKind::Choice(words) => format!("Literal[\"{}\"]", words.join("\", \"")),
    };
    // without a mode, the presence of a depth decides the mode
    let may_be_none = (option.default)().is_null() || option.name == "mode";
    if may_be_none { format!("{kind} | None") } else { kind }
}

fn takes_a_file(words: &[&str]) -> bool {
    words.iter().any(|word| word.ends_with(":FILE"))
}

/// Returns the options that a record's `config` contains, in the order of the record.
fn of_configuration(options: &[RunOption]) -> Vec<&RunOption> {
    let mut kept: Vec<&RunOption> = options
        .iter()
        .filter(|o| o.group != OptionGroup::Reading && o.recorded.place().is_some())
        .collect();
    kept.sort_by_key(|option| option.recorded.place());
    kept
}

/// Returns the options that a record's `config` contains, as keys of a `TypedDict`.
pub(super) fn configuration(options: &[RunOption]) -> String {
    let line = |option: &RunOption| {
        let kind = match option.kind {
            OptionKind::Choice(words) if takes_a_file(words) => "str | dict[str, str]",
            OptionKind::File | OptionKind::Text | OptionKind::Choice(_) => "str",
            OptionKind::Count(_) | OptionKind::Number => "int",
            OptionKind::CountOr(_) => "int | str",
            OptionKind::Factor => "float",
            OptionKind::Flag => "bool",
        };
        match option.recorded {
            Recorded::Always(_) => format!("    {}: {kind}\n", option.name),
            _ => format!("    {}: NotRequired[{kind}]\n", option.name),
        }
    };
    of_configuration(options).into_iter().map(line).collect()
}

/// Returns the schema `config` of a record's configuration, with its options replaced by `options`.
fn schema(options: &[RunOption], config: &Value) -> Value {
    let own = |key: &str| options.iter().any(|o| o.name == key && o.group != OptionGroup::Reading);
    let given = config["properties"].as_object().expect("properties");
    let mut others = given.iter().filter(|(key, _)| !own(key));
    let mut properties: Map<String, Value> = Map::new();
    properties.extend(others.by_ref().take(1).map(|(key, kind)| (key.clone(), kind.clone())));
    for option in of_configuration(options) {
        let kind = match option.kind {
            OptionKind::Choice(words) if takes_a_file(words) => json!({ "anyOf": [
                { "type": "string" },
                { "type": "object", "additionalProperties": { "type": "string" } },
            ] }),
            OptionKind::File | OptionKind::Text | OptionKind::Choice(_) => {
                json!({ "type": "string" })
            }
            OptionKind::Count(_) | OptionKind::Number => json!({ "type": "integer" }),
            OptionKind::CountOr(_) => json!({ "type": ["integer", "string"] }),
            OptionKind::Factor => json!({ "type": "number" }),
            OptionKind::Flag => json!({ "type": "boolean" }),
        };
        properties.insert(option.name.to_owned(), kind);
    }
    properties.extend(others.map(|(key, kind)| (key.clone(), kind.clone())));
    let before = config["required"].as_array().expect("required keys");
    let mut required: Vec<&str> =
        before.iter().filter_map(Value::as_str).filter(|key| !own(key)).collect();
    let always = |option: &&RunOption| matches!(option.recorded, Recorded::Always(_));
    required.extend(of_configuration(options).into_iter().filter(always).map(|o| o.name));
    required.sort_unstable();
    let mut config = config.clone();
    config["required"] = json!(required);
    config["properties"] = properties.into();
    config
}

/// Returns `source` with `lines` between the marks.
fn marked(source: &str, lines: &str) -> String {
    let [begin, end] = MARKS;
    let (before, rest) = source.split_once(begin).expect("a mark before the options");
    let (_, after) = rest.split_once(end).expect("a mark behind the options");
    format!("{before}{begin}{lines}{end}{after}")
}

fn in_package(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/flashatlas").join(name)
}

/// Checks that a file equals the text that `made` makes from it, or writes that text to the file.
fn must_be(name: &str, made: impl Fn(&str) -> String) {
    let file = in_package(name);
    let mut there = std::fs::read_to_string(&file).expect("a file of the package");
    if flashatlas_fixtures::written::is_asked_for() {
        there = made(&there);
        std::fs::write(&file, &there).expect("the file can be written");
    }
    assert!(
        made(&there) == there,
        "{name} differs from the table of options; FLASHATLAS_WRITE=1 cargo test -p \
         flashatlas-sim options writes it"
    );
}

#[test]
fn python_has_the_types_of_the_table() {
    must_be(ARGUMENTS, |source| marked(source, &arguments(OPTIONS)));
    let [types, schema_of_record] = RECORD;
    must_be(types, |source| marked(source, &configuration(OPTIONS)));
    must_be(schema_of_record, |text| {
        let mut record: Value = serde_json::from_str(text).expect("JSON");
        record["properties"]["config"] = schema(OPTIONS, &record["properties"]["config"]);
        serde_json::to_string_pretty(&record).expect("JSON") + "\n"
    });
}
