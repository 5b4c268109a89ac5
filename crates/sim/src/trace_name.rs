//! Names of traces that stand for several files.
//!
//! `merge:FILE,key=value;FILE,key=value` is several traces as one ([`crate::merged`]). Everything
//! else is one file. A `;` or `,` that belongs to the name of a file, and a backslash, stands
//! behind a backslash.

use crate::RunError;

/// What the name of a merge begins with.
pub(crate) const MERGE: &str = "merge:";

/// A part of a merge, as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PartText {
    /// Its file.
    pub path: String,
    /// `key=value`, with commas between.
    pub settings: String,
}

/// The name of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TraceName {
    /// One file.
    File(String),
    /// Several traces as one.
    Merge(Vec<PartText>),
}

fn refuse<T>(why: impl Into<String>) -> Result<T, RunError> {
    Err(RunError::option("trace", why))
}

/// Returns `text` cut at each `sign`, with backslashes left as they are.
///
/// # Errors
/// A backslash before nothing that needs one.
fn cut(text: &str, sign: char) -> Result<Vec<&str>, RunError> {
    let (mut pieces, mut from, mut behind) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if behind && !matches!(c, '\\' | ',' | ';') => {
                return refuse(format!(
                    "`{text}`: a backslash before `{c}`; expected it before `,`, `;` or another \
                     backslash"
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
    /// Returns what `text` names.
    ///
    /// # Errors
    /// A merge without parts, a part without a file or with a merge in it, and stray backslashes.
    pub fn of(text: &str) -> Result<TraceName, RunError> {
        let Some(parts) = text.strip_prefix(MERGE) else {
            return Ok(TraceName::File(text.to_owned()));
        };
        let part = |(number, part): (usize, &str)| {
            let pieces = cut(part, ',')?;
            let path = without_backslashes(pieces[0].trim());
            if path.is_empty() {
                return refuse(format!(
                    "`{text}`: part {} names no file; expected merge:FILE,key=value;FILE,key=value",
                    number + 1
                ));
            }
            if path.starts_with(MERGE) {
                return refuse(format!(
                    "`{text}`: part {} is a merge itself; put its parts here",
                    number + 1
                ));
            }
            Ok(PartText { path, settings: without_backslashes(&pieces[1..].join(",")) })
        };
        let parts = cut(parts, ';')?.into_iter().enumerate().map(part);
        Ok(TraceName::Merge(parts.collect::<Result<_, _>>()?))
    }

    /// Returns the text that [`TraceName::of`] reads as this.
    pub fn text(&self) -> String {
        match self {
            TraceName::File(path) => path.clone(),
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
            TraceName::Merge(parts) => {
                for part in parts {
                    part.path = change(&part.path);
                }
            }
        }
    }
}

/// Returns how the parts of a merge are set, one text a part; `None` for the name of one file.
pub(crate) fn merge_settings(name: &str) -> Option<Vec<String>> {
    match TraceName::of(name) {
        Ok(TraceName::Merge(parts)) => Some(parts.into_iter().map(|part| part.settings).collect()),
        _ => None,
    }
}

/// Returns the files that the trace called `name` is read from.
///
/// # Errors
/// A name that says nothing.
pub fn trace_files(name: &str) -> Result<Vec<String>, RunError> {
    let mut files = Vec::new();
    TraceName::of(name)?.change(&mut |path| {
        files.push(path.to_owned());
        path.to_owned()
    });
    Ok(files)
}

/// Returns the name of the trace called `name` if its files are `files`, in their order.
///
/// # Errors
/// A name that says nothing, and another number of files.
pub fn trace_with_files(name: &str, files: &[String]) -> Result<String, RunError> {
    if trace_files(name)?.len() != files.len() {
        return refuse(format!("`{name}` names another number of files than {}", files.len()));
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
        assert_eq!(trace_files("a;b,c").unwrap(), ["a;b,c"], "a file as ever");
    }

    #[test]
    fn what_names_nothing_is_refused() {
        assert!(refused("merge:").contains("part 1 names no file"));
        assert!(refused("merge:a;;b").contains("part 2 names no file"));
        assert!(refused("merge:,times=2").contains("part 1 names no file"));
        assert!(refused(r"merge:merge:a").contains("part 1 is a merge itself"));
        assert!(refused(r"merge:a\b").contains("a backslash before `b`"));
        assert!(refused(r"merge:a\").contains("ends in a backslash"));
        let error = trace_with_files("merge:a;b", &["x".into()]).unwrap_err();
        assert!(error.to_string().contains("another number of files"));
    }
}
