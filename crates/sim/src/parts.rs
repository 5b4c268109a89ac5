//! Parts that a run can choose by name: the project's own, and added parts with their origin.

use crate::metrics::MetricDef;
use flashatlas_device::{LayerDef, Part, Preset, Registry};
use flashatlas_ftl::SchemeDef;
use flashatlas_ftl::caching::CachePolicyDef;
use flashatlas_ftl::classifiers::ClassifierDef;
use flashatlas_ftl::maps::MapStoreDef;
use flashatlas_ftl::victims::VictimDef;
use flashatlas_lookup::hashes::HashDef;
use flashatlas_types::{ConfigError, Entries, Entry};
use flashatlas_workload::{FormatDef, GeneratorDef};
use serde::Serialize;
use serde_json::{Value, json};

/// Every registry of a run. A value never changes: adding a part makes a new value.
#[derive(Clone, Copy)]
pub struct Parts {
    /// Presets, schemes, map stores, victim policies, classifiers, map cache policies, hash
    /// functions, layers.
    pub drives: Registry,
    /// Trace formats and generators.
    pub workloads: flashatlas_workload::Registry,
    /// The metrics.
    pub metrics: Entries<MetricDef>,
    /// The parts that were added, in order.
    pub added: &'static [AddedPart],
}

/// A part of any kind.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum AnyPart {
    /// A part of a drive.
    Drive(Part),
    /// A trace format.
    Format(&'static FormatDef),
    /// A generator of requests.
    Generator(&'static GeneratorDef),
    /// A metric.
    Metric(&'static MetricDef),
}

/// `From` for each kind of part.
macro_rules! any_part {
    ($($def:ty => $make:expr),* $(,)?) => {
        $(impl From<&'static $def> for AnyPart {
            fn from(def: &'static $def) -> AnyPart {
                $make(def)
            }
        })*
    };
}

fn of_drive(part: impl Into<Part>) -> AnyPart {
    AnyPart::Drive(part.into())
}

any_part! {
    SchemeDef => of_drive,
    MapStoreDef => of_drive,
    VictimDef => of_drive,
    ClassifierDef => of_drive,
    CachePolicyDef => of_drive,
    HashDef => of_drive,
    LayerDef => of_drive,
    Preset => of_drive,
    FormatDef => AnyPart::Format,
    GeneratorDef => AnyPart::Generator,
    MetricDef => AnyPart::Metric,
}

/// Origin of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The plug-in, crate or package that brought the part.
    pub distribution: String,
    /// The version of the distribution.
    pub version: String,
    /// `sha256:` and the digest of its file or source.
    pub digest: String,
}

/// A part that did not come with the project, as records name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AddedPart {
    /// Kind of the part, such as `victim policy`.
    pub kind: &'static str,
    /// Name of the part.
    pub name: &'static str,
    /// Origin of the part.
    #[serde(flatten)]
    pub origin: Origin,
}

impl AnyPart {
    /// Returns the kind of the part, in words, and its name.
    pub fn named(self) -> (&'static str, &'static str) {
        fn of<T: Entry>(def: &T) -> (&'static str, &'static str) {
            (T::KIND, def.name())
        }
        match self {
            AnyPart::Drive(part) => part.named(),
            AnyPart::Format(def) => of(def),
            AnyPart::Generator(def) => of(def),
            AnyPart::Metric(def) => of(def),
        }
    }
}

impl Parts {
    /// Returns these parts and one more.
    ///
    /// # Errors
    /// Returns an error for a name or a key that is taken, as [`Registry::with`] does. If an added
    /// part has the same kind and name, the error names the origins of both parts.
    pub fn with(mut self, part: AnyPart, origin: &Origin) -> Result<Parts, ConfigError> {
        let (kind, name) = part.named();
        if let Some(before) = self.added.iter().find(|p| (p.kind, p.name) == (kind, name)) {
            let Origin { distribution, version, .. } = &before.origin;
            return Err(ConfigError::new(
                kind,
                format!(
                    "two parts are called `{name}`: one is from {distribution} {version}, and one \
                     from {} {}; give one of them another name",
                    origin.distribution, origin.version
                ),
            ));
        }
        match part {
            AnyPart::Drive(part) => self.drives = self.drives.with(part)?,
            AnyPart::Format(def) => self.workloads = self.workloads.with_format(def)?,
            AnyPart::Generator(def) => self.workloads = self.workloads.with_generator(def)?,
            AnyPart::Metric(def) => self.metrics = self.metrics.with(def)?,
        }
        let mut added = self.added.to_vec();
        added.push(AddedPart { kind, name, origin: origin.clone() });
        Ok(Parts { added: added.leak(), ..self })
    }
}

/// Returns the added parts that a run used, so that its record names their origins.
pub(crate) fn in_use(added: &[AddedPart], record: &Value) -> Vec<Value> {
    let config = &record["config"];
    let texts: Vec<&str> = (config["params"].as_object().into_iter().flat_map(|p| p.values()))
        .chain([&config["drive"], &record["trace"]["format"]])
        .filter_map(Value::as_str)
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .chain(config["workload"].as_str().and_then(|text| text.split(':').next()))
        .collect();
    added
        .iter()
        .filter(|part| part.kind == MetricDef::KIND || texts.contains(&part.name))
        .map(|part| json!(part))
        .collect()
}
