//! The presets of the project, from `devices/*.toml`. Every value in these files names its source.

/// One preset.
pub struct Preset {
    /// Name for the option `--drive`.
    pub name: &'static str,
    /// Text of the file.
    pub toml: &'static str,
}

flashatlas_types::entry!(Preset, "drive", "drive", none);

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset { name: "tiny", toml: include_str!("../devices/tiny.toml") },
    Preset { name: "mast-4gb", toml: include_str!("../devices/mast-4gb.toml") },
    Preset { name: "jasmine-64gb", toml: include_str!("../devices/jasmine-64gb.toml") },
    Preset { name: "ufs-128gb", toml: include_str!("../devices/ufs-128gb.toml") },
    Preset { name: "superpage-sata", toml: include_str!("../devices/superpage-sata.toml") },
    Preset { name: "tlc-small", toml: include_str!("../devices/tlc-small.toml") },
    Preset { name: "tlc-slc-small", toml: include_str!("../devices/tlc-slc-small.toml") },
    Preset { name: "tlc-nvme-1tb", toml: include_str!("../devices/tlc-nvme-1tb.toml") },
    Preset { name: "ufs2-256gb", toml: include_str!("../devices/ufs2-256gb.toml") },
    Preset { name: "ufs4-1tb", toml: include_str!("../devices/ufs4-1tb.toml") },
    Preset { name: "ssd-470-256gb", toml: include_str!("../devices/ssd-470-256gb.toml") },
    Preset { name: "z-ssd-800gb", toml: include_str!("../devices/z-ssd-800gb.toml") },
    Preset {
        name: "samsung-970-evo-plus-1tb",
        toml: include_str!("../devices/samsung-970-evo-plus-1tb.toml"),
    },
    Preset {
        name: "samsung-980-pro-1tb",
        toml: include_str!("../devices/samsung-980-pro-1tb.toml"),
    },
    Preset { name: "p1-1tb", toml: include_str!("../devices/p1-1tb.toml") },
    Preset { name: "p41-plus-1tb", toml: include_str!("../devices/p41-plus-1tb.toml") },
    Preset { name: "intel-670p-1tb", toml: include_str!("../devices/intel-670p-1tb.toml") },
    Preset {
        name: "samsung-860-qvo-1tb",
        toml: include_str!("../devices/samsung-860-qvo-1tb.toml"),
    },
    Preset { name: "pm9a3-3840gb", toml: include_str!("../devices/pm9a3-3840gb.toml") },
    Preset { name: "d5-p5316-15360gb", toml: include_str!("../devices/d5-p5316-15360gb.toml") },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DriveConfig, Registry};
    use std::collections::BTreeSet;

    #[test]
    fn every_file_is_a_preset_that_loads_and_names_its_sources() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices");
        let files: BTreeSet<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|f| f.unwrap().path())
            .filter(|p| p.extension().is_some_and(|e| e == "toml"))
            .map(|p| p.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(files, PRESETS.iter().map(|p| p.name.to_owned()).collect());
        for preset in PRESETS {
            let config =
                Registry::DRIVES.load(preset.name, None, &[]).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(
                config.layout().unwrap_or_else(|e| panic!("{}: {e}", preset.name)).unit_bytes % 512,
                0
            );
        }
    }

    #[test]
    fn a_value_without_a_source_does_not_load() {
        for (key, value) in [("ways", "2"), ("cell", "\"slc\""), ("over", "true")] {
            let text =
                format!("[drive]\nchannels = {{ value = 1, source = \"x\" }}\n{key} = {value}\n");
            let error = DriveConfig::from_preset_text(&text, "x.toml").unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "x.toml:3:1: drive.{key}: a preset's value needs a source: \
                     {{ value = …, source = \"…\" }}"
                )
            );
        }
    }
}
