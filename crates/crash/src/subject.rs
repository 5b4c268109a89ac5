//! Subjects of the tests: stacks of layers, schemes and map stores, and geometries of drives.
//!
//! Every scheme of the registry is tried on every geometry, with every map store if the scheme uses
//! a map store. Schemes and stores are tried in every variant that their definitions list
//! ([`flashatlas_ftl::SchemeDef::small`]). A scheme or store that is added to the registry becomes
//! a subject automatically.

use crate::CrashError;
use flashatlas_device::{Build, DriveConfig, LayerDef, Registry};
use flashatlas_ftl::SchemeDef;
use flashatlas_types::{Entries, Value};

/// Shape of a drive.
pub struct Geometry {
    /// Name in the identity of a failure.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Settings on top of the preset `tiny`, which has blocks of 8 pages of four sectors.
    settings: &'static [&'static str],
    /// Smallest number of blocks of a die; a scheme may need more blocks.
    blocks: u32,
    /// `true` if blocks are added until 3 % of over-provisioning cover a scheme's reserve.
    grows: bool,
    /// `true` if operations are in flight on several dies at the same time.
    pub parallel: bool,
    /// Sizes of a mapping unit; the drive uses the first size that the scheme accepts.
    units: &'static [&'static str],
}

/// Preset that every drive begins with.
const TINY: &str = "tiny";

/// All geometries.
pub const GEOMETRIES: &[Geometry] = &[
    Geometry {
        name: "mini",
        summary: "one die with blocks of four pages, no write cache",
        settings: &[
            "drive.channels=1",
            "drive.ways=1",
            "drive.pages=4",
            "cache.mode=write-through",
        ],
        blocks: 6,
        grows: true,
        parallel: false,
        units: &["2KiB"],
    },
    Geometry {
        name: "square",
        summary: "one die with 16 blocks of 16 pages, a write cache of eight pages",
        settings: &["drive.channels=1", "drive.ways=1", "drive.pages=16", "cache.bytes=16KiB"],
        blocks: 16,
        grows: false,
        parallel: false,
        units: &["2KiB"],
    },
    Geometry {
        name: "lanes",
        summary: "four dies with blocks of six MLC pages, units of a quarter page if the scheme \
                  supports them, a write cache",
        settings: &["drive.pages=6", "drive.cell=mlc", "cache.bytes=4KiB", "drive.spare_bytes=128"],
        blocks: 6,
        grows: false,
        parallel: true,
        units: &["512", "2KiB"],
    },
];

/// Layers over a scheme with a map store, each in one of its variants.
#[derive(Clone)]
pub struct Subject {
    /// The registry that the settings' names refer to.
    pub registry: Registry,
    /// The layers, from the top down.
    pub layers: Vec<&'static LayerDef>,
    /// Index of the variant in [`LayerDef::small`] of each layer. A layer with fewer variants uses
    /// its last variant.
    pub layer_variant: usize,
    /// The scheme.
    pub scheme: &'static SchemeDef,
    /// Index of the variant in [`SchemeDef::small`].
    pub scheme_variant: usize,
    /// The store's name; `-` if the scheme has none.
    pub store: &'static str,
    /// Index of the store's variant.
    pub store_variant: usize,
    store_settings: &'static [&'static str],
    /// Settings of the caller. They override all other settings.
    pub more: Vec<String>,
}

impl Subject {
    /// Returns the scheme's name, with its variant.
    pub fn scheme_name(&self) -> String {
        variant(self.scheme.name, self.scheme_variant)
    }

    /// Returns the names of the layers, joined by `+`, with their variant; `-` if there are none.
    pub fn layers_name(&self) -> String {
        match self.layers.iter().map(|l| l.name).collect::<Vec<_>>().join("+") {
            none if none.is_empty() => "-".into(),
            names => variant(&names, self.layer_variant),
        }
    }

    /// Returns the name of the stack, as in the identity of a failure.
    pub(crate) fn name(&self) -> String {
        let layers = Some(self.layers_name()).filter(|name| name != "-");
        let layers = layers.map_or(String::new(), |name| name + "/");
        format!("{layers}{}:{}", self.scheme_name(), self.store_name())
    }

    /// Returns `true` if there are no layers, or if a drive of some geometry fits the layers.
    pub(crate) fn fits(&self) -> bool {
        self.layers.is_empty()
            || GEOMETRIES.iter().any(|geometry| drive(self, geometry, false).is_ok())
    }

    /// Returns the store's name, with its variant.
    pub fn store_name(&self) -> String {
        variant(self.store, self.store_variant)
    }

    fn settings(&self) -> Vec<String> {
        let scheme = [format!("ftl.scheme={}", self.scheme.name)];
        let store = (self.store != "-").then(|| format!("map.store={}", self.store));
        let own = self.scheme.small.get(self.scheme_variant).copied().unwrap_or(&[]);
        let own = own.iter().chain(self.store_settings).map(|&s| s.to_owned());
        let names: Vec<&str> = self.layers.iter().map(|l| l.name).collect();
        let layers = (!names.is_empty()).then(|| format!("layers={}", names.join(",")));
        let small =
            |l: &&'static LayerDef| l.small.get(self.layer_variant.min(l.small.len() - 1)).copied();
        let of_layers = self.layers.iter().filter_map(small).flatten().map(|&s| s.to_owned());
        let own = scheme.into_iter().chain(store).chain(own).chain(layers).chain(of_layers);
        own.chain(self.more.iter().cloned()).collect()
    }
}

/// Returns `name` for the first variant, `name.2` for the second.
fn variant(name: &str, index: usize) -> String {
    if index == 0 { name.to_owned() } else { format!("{name}.{}", index + 1) }
}

/// Divisor of the number of logical pages of drives below layers.
///
/// So the pages make up whole superpages in each variant.
const UNDER_LAYERS_UNITS: u32 = 16;

/// Schemes and stores of the drives below layers. Other schemes and stores are tried only without
/// layers.
const UNDER_LAYERS: &[(&str, &str)] = &[("page", "dram"), ("page", "demand")];

/// Returns every stack of one layer or of two different layers.
fn layer_stacks(layers: Entries<LayerDef>) -> Vec<Vec<&'static LayerDef>> {
    let one = layers.iter().map(|layer| vec![layer]);
    let two = layers.iter().flat_map(move |top| {
        layers.iter().filter(|l| l.name != top.name).map(move |l| vec![top, l])
    });
    one.chain(two).collect()
}

/// Returns `true` if layers in this order are allowed over a page-mapped drive with this store.
///
/// The check uses a drive that is large enough for every layer.
fn make_sense(registry: &Registry, layers: &[&'static LayerDef], store: &str) -> bool {
    let names: Vec<&str> = layers.iter().map(|l| l.name).collect();
    let settings = [format!("map.store={store}"), format!("layers={}", names.join(","))];
    !registry.load("ufs-128gb", None, &settings).is_err_and(|e| e.key == "layers")
}

/// Returns every scheme with every store, and some of these stacks with layers.
///
/// The variants of a scheme are tried with the first variant of each store, and the variants of a
/// store with the first variant of the scheme.
pub fn subjects(registry: &Registry) -> Vec<Subject> {
    candidates(registry).into_iter().filter(Subject::fits).collect()
}

/// Returns all subjects, including subjects that fit no drive.
///
/// [`subjects`] leaves out the subjects that fit no drive, which takes a while.
pub(crate) fn candidates(registry: &Registry) -> Vec<Subject> {
    let mut all = Vec::new();
    for scheme in registry.ftl.schemes.iter() {
        let takes_store = (scheme.params)(&registry.ftl, &|_| None)
            .is_ok_and(|params| params.iter().any(|p| p.key == "map.store"));
        for scheme_variant in 0..scheme.small.len().max(1) {
            let (layers, layer_variant) = (Vec::new(), 0);
            let stack = Subject {
                registry: *registry,
                layers,
                layer_variant,
                scheme,
                scheme_variant,
                store: "-",
                store_variant: 0,
                store_settings: &[],
                more: Vec::new(),
            };
            if !takes_store {
                all.push(stack);
                continue;
            }
            for store in registry.ftl.stores.iter() {
                let variants = if scheme_variant == 0 { store.small.len().max(1) } else { 1 };
                all.extend((0..variants).map(|store_variant| Subject {
                    store: store.name,
                    store_variant,
                    store_settings: store.small.get(store_variant).copied().unwrap_or(&[]),
                    ..stack.clone()
                }));
            }
        }
    }
    let under = |s: &&Subject| {
        s.scheme_variant == 0
            && s.store_variant == 0
            && UNDER_LAYERS.contains(&(s.scheme.name, s.store))
    };
    let drives: Vec<Subject> = all.iter().filter(under).cloned().collect();
    for layers in layer_stacks(registry.layers) {
        // stacks of two layers use only the first variants, because each layer is also tried alone
        let several = layers.iter().any(|l| matches!(l.build, Build::OverSeveral { .. }));
        let most = match (layers.len(), several) {
            (1, _) => usize::MAX,
            (_, false) => 2,
            // several drives multiply the work
            (_, true) => 1,
        };
        let drives = if most == 1 { &drives[drives.len() - 1..] } else { &drives[..] };
        let variants = layers.iter().map(|l| l.small.len()).max().unwrap_or(1).min(most);
        let drives = drives.iter().filter(|drive| make_sense(registry, &layers, drive.store));
        for (drive, layer_variant) in drives.flat_map(|d| (0..variants).map(move |v| (d, v))) {
            all.push(Subject { layers: layers.clone(), layer_variant, ..drive.clone() });
        }
    }
    all
}

/// Returns the drive for a stack on a geometry.
///
/// If it is `tight`, the drive has the largest number of logical pages that the scheme accepts.
/// Otherwise, it has two thirds of this number, but at least the smallest number that
/// the layers accept (7 without layers).
///
/// # Errors
/// Returns an error if no drive of this shape fits the stack.
pub fn drive(stack: &Subject, geometry: &Geometry, tight: bool) -> Result<DriveConfig, CrashError> {
    // settings of the last drive that was refused; the reason is worked out only for the error
    let mut last = None;
    for unit in geometry.units {
        let more = if stack.layers.is_empty() { 24 } else { 48 };
        let most_blocks = if tight && geometry.grows { 160 } else { geometry.blocks + more };
        let mut best: Option<(u32, u32, u32)> = None;
        for blocks in
            (geometry.blocks..=most_blocks).step_by(if tight && geometry.grows { 8 } else { 1 })
        {
            let with = |pages: u32| settings(stack, geometry, unit, blocks, pages);
            let load = |pages: u32| accepted(stack, &with(pages));
            let bare = Subject { layers: Vec::new(), ..stack.clone() };
            let flash = settings(&bare, geometry, unit, blocks, 7);
            let Some(layout) = accepted(&bare, &flash).and_then(|flash| flash.layout().ok()) else {
                last = Some(flash);
                continue;
            };
            let slots = layout.slots();
            // at least two and a half blocks of data are needed so that the drive collects; layers
            // need more
            let least = if stack.layers.is_empty() {
                slots / blocks * 5 / 2
            } else {
                let fits = (1..=slots / UNDER_LAYERS_UNITS).map(|n| n * UNDER_LAYERS_UNITS);
                let Some(least) = fits.into_iter().find(|&pages| load(pages).is_some()) else {
                    last = Some(with(slots / UNDER_LAYERS_UNITS * UNDER_LAYERS_UNITS));
                    continue;
                };
                least
            };
            if load(least).is_none() {
                last = Some(with(least));
                continue;
            }
            let roomy = (slots as f64 / 1.03) as u32;
            let pages = most(least, roomy, |pages| load(pages).is_some());
            best = Some((blocks, pages, if stack.layers.is_empty() { 7 } else { least }));
            if !(tight && geometry.grows) || pages == roomy {
                break;
            }
        }
        if let Some((blocks, pages, least)) = best {
            let pages = if tight { pages } else { (pages * 2 / 3).max(least) };
            let settings = settings(stack, geometry, unit, blocks, pages);
            return Ok(stack.registry.load(TINY, None, &settings)?);
        }
    }
    let last = last.and_then(|settings| stack.registry.load(TINY, None, &settings).err());
    let (layers, scheme, store) = (stack.layers_name(), stack.scheme_name(), stack.store_name());
    let last = last.map(Box::new);
    Err(CrashError::NoDrive { geometry: geometry.name, layers, scheme, store, last })
}

/// Returns the drive with these settings, or `None` if they are refused.
fn accepted(stack: &Subject, settings: &[String]) -> Option<DriveConfig> {
    let preset = stack.registry.preset(TINY).expect("the preset is there");
    stack.registry.load_if_accepted(preset, settings)
}

/// Returns the largest number from `low` to `high` for which `good` returns `true`.
///
/// `low` must be good, and every number between `low` and a good number must be good.
fn most(low: u32, high: u32, good: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (low, high.max(low));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if good(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// Returns the settings of a stack on a geometry with this number of blocks and logical pages.
fn settings(
    stack: &Subject,
    geometry: &Geometry,
    unit: &str,
    blocks: u32,
    pages: u32,
) -> Vec<String> {
    let mut settings: Vec<String> = geometry.settings.iter().map(|&s| s.to_owned()).collect();
    settings.push(format!("drive.blocks={blocks}"));
    let whole = if stack.layers.is_empty() { 1 } else { UNDER_LAYERS_UNITS };
    settings.push(format!("drive.logical_pages={}", (pages / whole * whole).max(whole)));
    settings.push(format!("map.unit={unit}"));
    settings.push("host.idle_after=1us".into());
    settings.extend(stack.settings());
    settings
}

/// Returns the settings of a drive that differ from the preset `tiny`.
pub fn over_tiny(config: &DriveConfig) -> Vec<String> {
    let tiny = config.registry.load(TINY, None, &[]).expect("a preset");
    let differs =
        |(key, value): &(&str, &Value)| tiny.pairs().all(|(k, v)| k != *key || v != *value);
    config.pairs().filter(differs).map(|(key, value)| format!("{key}={value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::WORKLOADS;
    use flashatlas_fixtures::proofs::one_in;
    use flashatlas_host::STANDARD;
    use std::collections::BTreeSet;

    #[test]
    fn every_scheme_and_store_fits_every_geometry() {
        let stacks = subjects(&STANDARD);
        for scheme in STANDARD.ftl.schemes.iter() {
            assert!(stacks.iter().any(|s| s.scheme.name == scheme.name), "{}", scheme.name);
        }
        for store in STANDARD.ftl.stores.iter() {
            assert!(stacks.iter().any(|s| s.store == store.name), "{}", store.name);
        }
        for layer in STANDARD.layers.iter() {
            assert!(
                stacks.iter().any(|s| s.layers.iter().any(|l| l.name == layer.name)),
                "{}",
                layer.name
            );
        }
        // in a sample, each stack is tried on another geometry than the previous stack
        let every = one_in().min(GEOMETRIES.len());
        for (number, stack) in stacks.iter().enumerate() {
            for geometry in GEOMETRIES.iter().skip(number % every).step_by(every) {
                let tight: BTreeSet<bool> = WORKLOADS.iter().map(|w| w.tight).collect();
                for tight in tight {
                    let config = drive(stack, geometry, tight).unwrap_or_else(|e| panic!("{e}"));
                    assert_eq!(config.layers().len(), stack.layers.len());
                    let layout = config.layout().unwrap();
                    assert!(
                        layout.logical_units >= 7 && layout.slots() < 3000,
                        "{} units",
                        layout.logical_units
                    );
                }
            }
        }
    }

    #[test]
    fn the_largest_good_number_is_found() {
        for limit in 3..20 {
            assert_eq!(most(3, 19, |n| n <= limit), limit);
        }
    }
}
