//! The parameters of a drive: its own, and those of the parts that its configuration names.

use crate::Registry;
use flashatlas_types::{ConfigError, ParamDef, ParamKind, Params, RawConfig};

/// Parameters of the board, the controller and its write cache.
pub const PARAMS: &[ParamDef] = &[
    text("drive.summary", "", "what drive this is"),
    int("drive.channels", 1, 64, None, "channels"),
    int("drive.ways", 1, 64, None, "packages (chip enables) on a channel"),
    int("drive.dies", 1, 16, None, "dies in a package"),
    int("drive.planes", 1, 16, None, "planes in a die"),
    int("drive.blocks", 1, 1 << 20, None, "erase blocks in a plane"),
    int("drive.pages", 1, 1 << 16, None, "pages in an erase block"),
    ParamDef {
        key: "drive.page_bytes",
        kind: ParamKind::Bytes(512, 1 << 20),
        default: None,
        doc: "data bytes of a page",
    },
    ParamDef {
        key: "drive.spare_bytes",
        kind: ParamKind::Bytes(16, 1 << 16),
        default: None,
        doc: "spare bytes of a page",
    },
    ParamDef {
        key: "drive.cell",
        kind: ParamKind::Choice(&["slc", "mlc", "tlc"]),
        default: None,
        doc: "bits a cell",
    },
    int("drive.frame_channels", 1, 64, Some("1"), "channels under one program unit (superpage)"),
    int("drive.frame_ways", 1, 64, Some("1"), "ways under one program unit (superpage)"),
    int(
        "drive.frame_dies",
        1,
        16,
        Some("1"),
        "dies of a package under one program unit (superpage)",
    ),
    int(
        "drive.frame_planes",
        1,
        16,
        Some("1"),
        "planes under one program unit (multi-plane operations)",
    ),
    text(
        "drive.allocation",
        "CWDP",
        "order in which consecutive frames visit Channels, Ways, Dies and Planes: the first letter \
         changes fastest; 24 orders",
    ),
    int(
        "drive.logical_pages",
        0,
        u32::MAX as u64 - 64,
        Some("0"),
        "mapping units that the drive exports; 0: from drive.over_provisioning",
    ),
    ParamDef {
        key: "drive.over_provisioning",
        kind: ParamKind::Ratio(0.0, 1000.0),
        default: Some("0.07"),
        doc: "(physical - logical) / logical capacity; ignored when drive.logical_pages is given",
    },
    ParamDef {
        key: "cache.mode",
        kind: ParamKind::Choice(&["write-back", "write-through"]),
        default: Some("write-back"),
        doc: "`write-back`: a write completes when it is in the cache; `write-through`: when it is \
              on flash, and a frame that it does not fill is padded",
    },
    ParamDef {
        key: "cache.bytes",
        kind: ParamKind::Bytes(0, 1 << 40),
        default: Some("1MiB"),
        doc: "size of the write cache",
    },
    ParamDef {
        key: "cache.high",
        kind: ParamKind::Ratio(0.0, 1.0),
        default: Some("0.75"),
        doc: "share of the cache above which the least recently written units leave",
    },
    ParamDef {
        key: "cache.low",
        kind: ParamKind::Ratio(0.0, 1.0),
        default: Some("0.5"),
        doc: "share at which they stop leaving",
    },
    ParamDef {
        key: "host.command_time",
        kind: ParamKind::Time,
        default: Some("0"),
        doc: "the controller's fixed time for a command, before anything else",
    },
    text(
        "layers",
        "",
        "what the host puts over the drive, from the top down: names of layers, separated by \
         commas; see `flashatlas layers`",
    ),
    int(
        "host.queue_depth",
        1,
        1 << 16,
        Some("32"),
        "commands that the drive accepts before the first completes",
    ),
    ParamDef {
        key: "host.idle_after",
        kind: ParamKind::Time,
        default: Some("100ms"),
        doc: "without a command for so long, the drive begins background work",
    },
];

const fn int(
    key: &'static str,
    low: u64,
    high: u64,
    default: Option<&'static str>,
    doc: &'static str,
) -> ParamDef {
    ParamDef { key, kind: ParamKind::Int(low, high), default, doc }
}

const fn text(key: &'static str, default: &'static str, doc: &'static str) -> ParamDef {
    ParamDef { key, kind: ParamKind::Text, default: Some(default), doc }
}

/// Parameters that every drive has, whatever its scheme.
pub fn common_params() -> Vec<&'static ParamDef> {
    [PARAMS, flashatlas_nand::PARAMS, flashatlas_timing::PARAMS, flashatlas_ftl::PARAMS]
        .into_iter()
        .flatten()
        .collect()
}

/// Check `raw` against everything that the drive's parts declare.
pub(crate) fn resolve(registry: &Registry, raw: &RawConfig) -> Result<Params, ConfigError> {
    let text = |key: &str| raw.text(key).map(str::to_owned);
    let placed = |e: ConfigError| {
        let place = raw.place(&e.key).to_owned();
        e.at(place)
    };
    let scheme = text("ftl.scheme").unwrap_or("page".into());
    let scheme = registry.ftl.scheme(&scheme).map_err(placed)?;
    let mut defs = common_params();
    defs.extend((scheme.params)(&registry.ftl, &text).map_err(placed)?);
    let layers = registry.layers_named(&text("layers").unwrap_or_default()).map_err(placed)?;
    for (i, layer) in layers.iter().enumerate() {
        if layers[..i].iter().any(|l| l.name == layer.name) {
            return Err(placed(ConfigError::new(
                "layers",
                format!("`{}` is named twice", layer.name),
            )));
        }
        defs.extend(layer.params);
    }
    raw.resolve(&defs, |key| owner(registry, key, scheme.name))
}

/// Which part a key would belong to, were that part in use.
fn owner(registry: &Registry, key: &str, scheme: &str) -> Option<String> {
    let has = |params: &[ParamDef]| params.iter().any(|p| p.key == key);
    if let Some(v) = registry.ftl.victims.iter().find(|v| has(v.params)) {
        return Some(format!("belongs to ftl.victim = {}, which is not in use", v.name));
    }
    if let Some(c) = registry.ftl.classifiers.iter().find(|c| has(c.params)) {
        return Some(format!("belongs to ftl.classifier = {}, which is not in use", c.name));
    }
    if let Some(m) = registry.ftl.stores.iter().find(|m| has(m.params)) {
        return Some(format!("belongs to map.store = {}, which is not in use", m.name));
    }
    if let Some(l) = registry.layers.iter().find(|l| has(l.params)) {
        return Some(format!("belongs to the layer {}, which is not in use (layers)", l.name));
    }
    let other = registry.ftl.schemes.iter().filter(|s| s.name != scheme).find(|s| {
        (s.params)(&registry.ftl, &|_| None).is_ok_and(|params| params.iter().any(|p| p.key == key))
    })?;
    Some(format!("belongs to ftl.scheme = {}; the scheme here is {scheme}", other.name))
}
