//! Parts that a checkpoint needs.

use crate::metrics::MetricDef;
use crate::parts::{AddedPart, in_use};
use flashatlas_device::DriveConfig;
use flashatlas_ftl::SchemeDef;
use flashatlas_ftl::maps::MapStoreDef;
use flashatlas_types::Entry;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// An added part that the drive of a checkpoint uses, in the form of run records.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NeededPart {
    pub kind: String,
    pub name: String,
    pub distribution: String,
    pub version: String,
    pub digest: String,
}

impl NeededPart {
    /// Returns the parts of `added` that a drive of `config` uses.
    pub fn of(config: &DriveConfig, added: &[AddedPart]) -> Vec<NeededPart> {
        let params: Map<String, Value> = config
            .pairs()
            .map(|(key, value)| (key.to_owned(), crate::record::param(value)))
            .collect();
        let used = in_use(added, &json!({ "config": { "params": &params } }));
        let part = |part| serde_json::from_value(part).expect("parts have this form");
        let all = used.into_iter().map(part);
        let chosen = |kind: &str, key: &str, part: &NeededPart| {
            part.kind != kind || params.get(key).and_then(Value::as_str) == Some(&part.name)
        };
        let is_used = |part: &NeededPart| {
            part.kind != MetricDef::KIND
                && chosen(SchemeDef::KIND, SchemeDef::KEY, part)
                && chosen(MapStoreDef::KIND, MapStoreDef::KEY, part)
        };
        all.filter(is_used).collect()
    }

    /// Returns the reason why a drive that this part wrote cannot be mounted, or `None`.
    ///
    /// The reason is that the part is missing from `added`, or has another digest there. Parts that
    /// only decided the places of pages, such as policies, are not needed for a mount.
    pub fn missing(&self, added: &[AddedPart]) -> Option<String> {
        if ![SchemeDef::KIND, MapStoreDef::KIND].contains(&self.kind.as_str()) {
            return None;
        }
        let NeededPart { kind, name, distribution, version, digest } = self;
        let named = format!("{kind} `{name}` of {distribution} {version}");
        match added.iter().find(|part| part.kind == kind && part.name == name) {
            None => Some(format!("the file needs {named} ({digest}), which is not loaded")),
            Some(part) if part.origin.digest != *digest => Some(format!(
                "the file needs {named} with digest {digest}, but the loaded part of that name has \
                 digest {}",
                part.origin.digest
            )),
            Some(_) => None,
        }
    }
}
