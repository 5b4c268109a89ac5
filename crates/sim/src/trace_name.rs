//! Names of traces that stand for several files.
//!
//! `merge:FILE,key=value;FILE,key=value` stands for several traces that are played as one
//! ([`crate::merged`]). `cpus:FILE;FILE` stands for the files of one recording, with one file for
//! each CPU. Any other name is one file. In the file names of these lists, a backslash precedes
//! each `;`, `,` and backslash.

use crate::RunError;

/// Prefix of the name of a merge.
pub(crate) const MERGE: &str = "merge:";

/// Prefix of the name of a recording in several files.
const CPUS: &str = "cpus:";

/// A part of a merge, as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PartText {
    /// File of the part.
    pub path: String,
    /// Settings `key=value`, separated by commas.
    pub settings: String,
}

/// The name of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TraceName {
    /// One file.
    File(String),
    /// Several traces that are played as one.
    Merge(Vec<PartText>),
    /// A recording in several files.
    Cpus(Vec<String>),
}

fn refuse<T>(why: impl Into<String>) -> Result<T, RunError> {
    Err(RunError::option("trace", why))
}

/// Returns the pieces of `text` between the characters `sign`, with their backslashes.
///
/// # Errors
/// Returns an error for a backslash before a character that needs no backslash.
fn cut(text: &str, sign: char) -> Result<Vec<&str>, RunError> {
    let (mut pieces, mut from, mut behind) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if behind && !matches!(c, '\\' | ',' | ';') => {
                return refuse(format!(
                    "`{text}` has a backslash before `{c}`; write a backslash only before `,`, `;` \
                     or another backslash"
                ));
            }
            _ if behind => behind = false,
            '\\' => behind = true,
            _ if c == sign => {
                pieces.push(&text[from..at]);
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    if behind {
        return refuse(format!("`{text}` ends in a backslash that nothing follows"));
    }
    pieces.push(&text[from..]);
    Ok(pieces)
}

fn without_backslashes(text: &str) -> String {
    let mut behind = false;
    let mut kept = |c: char| {
        behind = c == '\\' && !behind;
        !behind
    };
    text.chars().filter(|&c| kept(c)).collect()
}

fn with_backslashes(text: &str, signs: &[char]) -> String {
    let marked =
        text.chars().flat_map(|c| signs.contains(&c).then_some('\\').into_iter().chain([c]));
    marked.collect()
}

impl TraceName {
    /// Parses the name of a trace.
    ///
    /// # Errors
    /// Returns an error for a merge without parts, a part without a file, a part that is a merge,
    /// and stray backslashes.
    pub fn of(text: &str) -> Result<TraceName, RunError> {
        if let Some(files) = text.strip_prefix(CPUS) {
            let files = cut(files, ';')?.into_iter().map(|file| without_backslashes(file.trim()));
            let files: Vec<String> = files.collect();
            let named = |file: &String| {
                file.is_empty() || [MERGE, CPUS].iter().any(|kind| file.starts_with(kind))
            };
            return if files.iter().any(named) {
                refuse(format!(
                    "`{text}` is not a list of files: write cpus:FILE;FILE, one for each CPU"
                ))
            } else {
                Ok(TraceName::Cpus(files))
            };
        }
        let Some(parts) = text.strip_prefix(MERGE) else {
            return Ok(TraceName::File(text.to_owned()));
        };
        let part = |(number, part): (usize, &str)| {
            let pieces = cut(part, ',')?;
            let path = without_backslashes(pieces[0].trim());
            if path.is_empty() {
                return refuse(format!(
                    "part {} of `{text}` names no file; write merge:FILE,key=value;FILE,key=value",
                    number + 1
                ));
            }
            if path.starts_with(MERGE) {
                return refuse(format!(
                    "part {} of `{text}` is a merge itself; write the parts of that merge here",
                    number + 1
                ));
            }
            TraceName::of(&path)?;
            Ok(PartText { path, settings: without_backslashes(&pieces[1..].join(",")) })
        };
        let parts = cut(parts, ';')?.into_iter().enumerate().map(part);
        Ok(TraceName::Merge(parts.collect::<Result<_, _>>()?))
    }

    /// Returns the files that `text` names, if `text` is not a merge.
    ///
    /// # Errors
    /// Returns the errors of [`TraceName::of`], and an error for a merge.
    pub fn one(text: &str) -> Result<Vec<String>, RunError> {
        match TraceName::of(text)? {
            TraceName::File(path) => Ok(vec![path]),
            TraceName::Cpus(files) => Ok(files),
            TraceName::Merge(_) => refuse(format!("`{text}` is a merge")),
        }
    }

    /// Returns the text that [`TraceName::of`] parses to this name.
    pub fn text(&self) -> String {
        match self {
            TraceName::File(path) => path.clone(),
            TraceName::Cpus(files) => {
                let file = |file: &String| with_backslashes(file, &['\\', ',', ';']);
                format!("{CPUS}{}", files.iter().map(file).collect::<Vec<_>>().join(";"))
            }
            TraceName::Merge(parts) => {
                let part = |part: &PartText| {
                    let path = with_backslashes(&part.path, &['\\', ',', ';']);
                    let comma = if part.settings.is_empty() { "" } else { "," };
                    format!("{path}{comma}{}", with_backslashes(&part.settings, &['\\', ';']))
                };
                format!("{MERGE}{}", parts.iter().map(part).collect::<Vec<_>>().join(";"))
            }
        }
    }

    /// Changes the path of each file.
    pub fn change(&mut self, change: &mut dyn FnMut(&str) -> String) {
        match self {
            TraceName::File(path) => *path = change(path),
            TraceName::Cpus(files) => files.iter_mut().for_each(|file| *file = change(file)),
            TraceName::Merge(parts) => {
                for part in parts {
                    // the name of a part was parsed before
                    let mut name = TraceName::of(&part.path)
                        .unwrap_or_else(|_| TraceName::File(part.path.clone()));
                    name.change(change);
                    part.path = name.text();
                }
            }
        }
    }
}

/// Returns the name of the whole trace that `name` belongs to.
///
/// If `name` is the file of one CPU, the whole trace consists of all files of the recording in the
/// same folder. `beside` lists that folder.
///
/// # Errors
/// Returns an error for a name that cannot be parsed.
pub fn whole_trace(name: &str, beside: &dyn Fn(&str) -> Vec<String>) -> Result<String, RunError> {
    let whole = |path: &str| {
        let cpus = of_each_cpu(path, beside);
        if cpus.len() > 1 { TraceName::Cpus(cpus) } else { TraceName::File(path.to_owned()) }
    };
    let mut found = TraceName::of(name)?;
    match &mut found {
        TraceName::File(path) => return Ok(whole(path).text()),
        TraceName::Cpus(_) => {}
        TraceName::Merge(parts) => {
            for part in parts {
                if let TraceName::File(path) = TraceName::of(&part.path)? {
                    part.path = whole(&path).text();
                }
            }
        }
    }
    Ok(found.text())
}

/// Returns the files beside `path` that belong to the same recording of blktrace.
///
/// The files are called `NAME.blktrace.0` and so on, and are sorted by CPU. Only files with the
/// same compression as `path` count. The result is empty if `path` has no such name.
fn of_each_cpu(path: &str, beside: &dyn Fn(&str) -> Vec<String>) -> Vec<String> {
    let (folder, name) = path.rfind('/').map_or(("", path), |at| path.split_at(at + 1));
    let Some((stem, _, suffix)) = cpu_of(name) else { return Vec::new() };
    let same = |other: &str| match cpu_of(other) {
        Some((other, cpu, end)) if (other, end) == (stem, suffix) => Some(cpu),
        _ => None,
    };
    let mut found: Vec<(u32, String)> = beside(path)
        .iter()
        .filter_map(|name| Some((same(name)?, format!("{folder}{name}"))))
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Returns the text before the number of the CPU, this number, and the text behind it.
fn cpu_of(name: &str) -> Option<(&str, u32, &str)> {
    const MARK: &str = ".blktrace.";
    let at = name.rfind(MARK)? + MARK.len();
    let digits = name[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len() - at);
    let (cpu, suffix) = name[at..].split_at(digits);
    let known = ["", ".gz", ".bz2", ".xz", ".zst"].contains(&suffix);
    Some((&name[..at], cpu.parse().ok().filter(|_| known)?, suffix))
}

/// Returns the settings of a merge, one text for each part, or `None` if `name` is no merge.
pub(crate) fn merge_settings(name: &str) -> Option<Vec<String>> {
    match TraceName::of(name) {
        Ok(TraceName::Merge(parts)) => Some(parts.into_iter().map(|part| part.settings).collect()),
        _ => None,
    }
}

/// Returns the files that the trace called `name` is read from.
///
/// # Errors
/// Returns an error for a name that cannot be parsed.
pub fn trace_files(name: &str) -> Result<Vec<String>, RunError> {
    let mut files = Vec::new();
    TraceName::of(name)?.change(&mut |path| {
        files.push(path.to_owned());
        path.to_owned()
    });
    Ok(files)
}

/// Returns `name` with its files replaced by `files`, in the same order.
///
/// # Errors
/// Returns an error for a name that cannot be parsed, and for a wrong number of files.
pub fn trace_with_files(name: &str, files: &[String]) -> Result<String, RunError> {
    if trace_files(name)?.len() != files.len() {
        return refuse(format!("`{name}` does not name {} files", files.len()));
    }
    let mut files = files.iter();
    let mut found = TraceName::of(name)?;
    found.change(&mut |_| files.next().cloned().unwrap_or_default());
    Ok(found.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        TraceName::of(text).unwrap_err().to_string()
    }

    #[test]
    fn a_name_gives_its_files_and_takes_others() {
        let name = r"merge:a\,b.csv,times=3,format=columns:delimiter=\;,offset=0:bytes;c\;.log";
        assert_eq!(trace_files(name).unwrap(), ["a,b.csv", "c;.log"]);
        let TraceName::Merge(parts) = TraceName::of(name).unwrap() else { panic!("a merge") };
        assert_eq!(parts[0].settings, "times=3,format=columns:delimiter=;,offset=0:bytes");
        assert_eq!(TraceName::of(name).unwrap().text(), name);
        let moved = trace_with_files(name, &["x".into(), r"y\;z".into()]).unwrap();
        assert_eq!(trace_files(&moved).unwrap(), ["x", r"y\;z"]);
        assert_eq!(
            trace_files("a;b,c").unwrap(),
            ["a;b,c"],
            "without a prefix, the name is one file"
        );
    }

    #[test]
    fn a_file_of_a_cpu_stands_for_all_that_lie_beside_it() {
        let names = ["tr.blktrace.10", "tr.blktrace.2", "tr.blktrace.0.gz", "u.blktrace.1", "x"];
        let beside = |_: &str| names.map(str::to_owned).to_vec();
        let whole = |name: &str| whole_trace(name, &beside).unwrap();
        assert_eq!(whole("in/tr.blktrace.2"), "cpus:in/tr.blktrace.2;in/tr.blktrace.10");
        assert_eq!(
            whole("tr.blktrace.0.gz"),
            "tr.blktrace.0.gz",
            "this file is compressed, the other files are not"
        );
        assert_eq!(whole("u.blktrace.1"), "u.blktrace.1");
        assert_eq!(
            whole("cpus:tr.blktrace.2"),
            "cpus:tr.blktrace.2",
            "a name of one file stays one file"
        );
        let merge = whole("merge:tr.blktrace.2,times=2;x");
        assert_eq!(
            merge,
            r"merge:cpus:tr.blktrace.2\;tr.blktrace.10,times=2;x".replace(r"\\", r"\")
        );
        assert_eq!(trace_files(&merge).unwrap(), ["tr.blktrace.2", "tr.blktrace.10", "x"]);
        let files = ["a,1".to_owned(), "b".into(), "c".into()];
        assert_eq!(trace_files(&trace_with_files(&merge, &files).unwrap()).unwrap(), files);
        assert!(refused("cpus:a;;b").contains("write cpus:FILE;FILE"));
        assert!(refused("merge:cpus:merge:a").contains("write cpus:FILE;FILE"));
    }

    #[test]
    fn what_names_nothing_is_refused() {
        assert!(refused("merge:").contains("part 1 of `merge:` names no file"));
        assert!(refused("merge:a;;b").contains("part 2 of `merge:a;;b` names no file"));
        assert!(refused("merge:,times=2").contains("part 1 of `merge:,times=2` names no file"));
        assert!(refused(r"merge:merge:a").contains("is a merge itself"));
        assert!(refused(r"merge:a\b").contains("a backslash before `b`"));
        assert!(refused(r"merge:a\").contains("ends in a backslash"));
        let error = trace_with_files("merge:a;b", &["x".into()]).unwrap_err();
        assert!(error.to_string().contains("does not name 1 files"));
    }
}
