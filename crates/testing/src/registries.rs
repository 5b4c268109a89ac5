//! Registries that must list every file of their folder.

use std::collections::BTreeSet;
use std::path::Path;

/// Compare the files and folders of `folder` with the `names` of its registry: a file that nobody
/// lists is dead code. `mod`, `lib` and the `others` are no entries; names may have hyphens where
/// files have underscores.
///
/// # Panics
/// When they differ, or the folder cannot be read.
pub fn assert_registered<'a>(
    folder: impl AsRef<Path>,
    others: &[&str],
    names: impl IntoIterator<Item = &'a str>,
) {
    let folder = folder.as_ref();
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|file| file.expect("an entry of the folder").path())
        .filter(|path| path.is_dir() || path.extension().is_some_and(|end| end == "rs"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .filter(|file| !["mod", "lib"].iter().chain(others).any(|other| other == file))
        .collect();
    let names = names.into_iter().map(|name| name.replace('-', "_")).collect();
    assert_eq!(files, names, "{}", folder.display());
}
