//! Registries that must list every file of their folder.

use std::path::Path;

/// Compares the files and folders of `folder` with the `names` of its registry.
///
/// Each file must have exactly one name, because an unlisted file is dead code. The files `mod`,
/// `lib` and `others` are ignored. A name has hyphens where its file has underscores.
///
/// # Panics
/// Panics if files and names differ, or if the folder cannot be read.
pub fn assert_registered<'a>(
    folder: impl AsRef<Path>,
    others: &[&str],
    names: impl IntoIterator<Item = &'a str>,
) {
    let folder = folder.as_ref();
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|file| file.expect("an entry of the folder").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .filter(|file| !["mod", "lib"].iter().chain(others).any(|other| other == file))
        .map(|file| file.replace('_', "-"))
        .collect();
    files.sort();
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort();
    assert_eq!(files, names, "{}", folder.display());
}
