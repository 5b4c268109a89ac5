#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunSpec;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// The fields of `RunSpec` that are no options: the drive, its settings, and `reading`.
    const DRIVE: [&str; 4] = ["drive", "drive_toml", "set", "reading"];

    fn names(of: &Value) -> BTreeSet<&str> {
        of.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn every_field_is_an_option_with_its_default() {
        let spec: RunSpec = serde_json::from_value(json!({ "drive": "tiny" })).unwrap();
        let fields = json!(spec);
        let of = |reading: bool| OPTIONS.iter().filter(move |o| (o.group == READING) == reading);
        let whole: BTreeSet<&str> = of(false).map(|o| o.name).chain(DRIVE).collect();
        assert_eq!(names(&fields), whole);
        assert_eq!(names(&fields["reading"]), of(true).map(|o| o.name).collect());
        for option in OPTIONS {
            let group = if option.group == READING { &fields["reading"] } else { &fields };
            let default: Value = serde_json::from_str(option.default).unwrap();
            assert_eq!(group[option.name], default, "{}", option.name);
        }
    }

    #[test]
    fn choices_are_those_that_are_understood() {
        for option in OPTIONS {
            let Choice(words) = option.kind else { continue };
            for word in words {
                let value = match word.split_once(":FILE") {
                    Some((kind, _)) => json!({ kind: "a file" }),
                    None => json!(word),
                };
                let spec = json!({ "drive": "tiny", option.name: value });
                assert!(serde_json::from_value::<RunSpec>(spec).is_ok(), "{} {word}", option.name);
            }
            let wrong = json!({ "drive": "tiny", option.name: "nonsense" });
            let error = serde_json::from_value::<RunSpec>(wrong).unwrap_err().to_string();
            for word in words {
                let name = word.split(':').next().unwrap();
                assert!(error.contains(&format!("`{name}`")), "{name} is missing: {error}");
            }
            assert_eq!(error.matches('`').count(), 2 * words.len() + 2, "{error}");
        }
    }
}
