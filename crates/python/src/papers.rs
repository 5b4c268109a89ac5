//! Published experiments that the project repeats (`papers/*/experiment.toml`), and published
//! numbers of the products that presets are made after (`devices/published/*.toml`).

/// For each experiment, the name of its folder and the text of its file.
pub const PAPERS: &[(&str, &str)] = &[
    ("0-hybrid-nvm", include_str!("../papers/0-hybrid-nvm/experiment.toml")),
    ("1-mast", include_str!("../papers/1-mast/experiment.toml")),
    ("2-demand-map", include_str!("../papers/2-demand-map/experiment.toml")),
    ("2-hpb", include_str!("../papers/2-hpb/experiment.toml")),
    ("3-lpmt", include_str!("../papers/3-lpmt/experiment.toml")),
    ("4-hard", include_str!("../papers/4-hard/experiment.toml")),
    ("5-drives", include_str!("../papers/5-drives/experiment.toml")),
    ("6-today", include_str!("../papers/6-today/experiment.toml")),
];

/// For each preset that is made after a product, its name and the text of its published numbers.
pub const PUBLISHED: &[(&str, &str)] = &[
    ("ufs2-256gb", include_str!("../devices/published/ufs2-256gb.toml")),
    ("ufs4-1tb", include_str!("../devices/published/ufs4-1tb.toml")),
    ("ssd-470-256gb", include_str!("../devices/published/ssd-470-256gb.toml")),
    ("z-ssd-800gb", include_str!("../devices/published/z-ssd-800gb.toml")),
    (
        "samsung-970-evo-plus-1tb",
        include_str!("../devices/published/samsung-970-evo-plus-1tb.toml"),
    ),
    ("samsung-980-pro-1tb", include_str!("../devices/published/samsung-980-pro-1tb.toml")),
    ("p1-1tb", include_str!("../devices/published/p1-1tb.toml")),
    ("p41-plus-1tb", include_str!("../devices/published/p41-plus-1tb.toml")),
    ("intel-670p-1tb", include_str!("../devices/published/intel-670p-1tb.toml")),
    ("samsung-860-qvo-1tb", include_str!("../devices/published/samsung-860-qvo-1tb.toml")),
    ("pm9a3-3840gb", include_str!("../devices/published/pm9a3-3840gb.toml")),
    ("d5-p5316-15360gb", include_str!("../devices/published/d5-p5316-15360gb.toml")),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    fn entries(dir: &str, folders: bool) -> BTreeSet<String> {
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(dir))
            .unwrap()
            .map(|f| f.unwrap().path())
            .filter(|f| f.is_dir() == folders)
            .map(|f| f.file_name().unwrap().to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn every_folder_is_listed() {
        let listed = super::PAPERS.iter().map(|p| p.0.to_owned()).collect();
        assert_eq!(entries("papers", true), listed);
    }

    #[test]
    fn every_published_drive_is_listed() {
        let listed = super::PUBLISHED.iter().map(|p| format!("{}.toml", p.0)).collect();
        assert_eq!(entries("devices/published", false), listed);
    }
}
