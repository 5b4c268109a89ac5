//! Published experiments that the project repeats: `papers/*/experiment.toml`.

/// For each experiment, the name of its folder and the text of its file.
pub const PAPERS: &[(&str, &str)] = &[
    ("0-hybrid-nvm", include_str!("../papers/0-hybrid-nvm/experiment.toml")),
    ("1-mast", include_str!("../papers/1-mast/experiment.toml")),
    ("2-demand-map", include_str!("../papers/2-demand-map/experiment.toml")),
    ("2-hpb", include_str!("../papers/2-hpb/experiment.toml")),
    ("3-lpmt", include_str!("../papers/3-lpmt/experiment.toml")),
    ("4-hard", include_str!("../papers/4-hard/experiment.toml")),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_folder_is_listed() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers");
        let folders: BTreeSet<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|f| f.unwrap())
            .filter(|f| f.path().is_dir())
            .map(|f| f.file_name().into_string().unwrap())
            .collect();
        assert_eq!(folders, super::PAPERS.iter().map(|p| p.0.to_owned()).collect());
    }
}
