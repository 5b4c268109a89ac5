//! A job file as a list of items: section headers and options.
//!
//! Included files and the values of variables are inserted.

use super::error::{JobError, Position};
use std::io;
use std::sync::Arc;

/// Maximum number of bytes of a line, which is fio's own limit.
const MAX_LINE_BYTES: usize = 8192;
/// Maximum number of bytes of a job file, and of each file that it includes.
pub const MAX_TEXT_BYTES: u64 = 1 << 20;
/// Maximum number of nested files, the job file included, which is fio's own limit.
const MAX_DEPTH: usize = 16;
/// Maximum number of files that are read for one job file, the job file included.
const MAX_FILES: usize = 256;
/// Maximum number of sections and options in all files together.
const MAX_ITEMS: usize = 65_536;

/// A section header or an option.
pub(super) enum Item {
    /// `[name]`.
    Section(String),
    /// `key=value` or `key`; `value_at` is the position of the value.
    Option { key: String, value: Option<String>, value_at: Position },
}

/// Function that looks up an environment variable.
pub(super) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;
/// Function that reads an included file.
pub(super) type Include<'a> = &'a dyn Fn(&str) -> io::Result<String>;

pub(super) struct Lines<'a> {
    pub env: Env<'a>,
    pub include: Include<'a>,
    pub items: Vec<(Position, Item)>,
    /// The files that are being read, the outermost first.
    open: Vec<Arc<str>>,
    files: usize,
}

impl<'a> Lines<'a> {
    pub fn new(env: Env<'a>, include: Include<'a>) -> Lines<'a> {
        Lines { env, include, items: Vec::new(), open: Vec::new(), files: 0 }
    }

    /// Reads the text of one file, and of the files that it includes.
    pub fn read(&mut self, file: &Arc<str>, text: &str) -> Result<(), JobError> {
        self.open.push(Arc::clone(file));
        self.files += 1;
        for (number, raw) in (1u32..).zip(text.lines()) {
            let at = |column: usize| Position {
                file: Arc::clone(file),
                line: number,
                column: column as u32 + 1,
            };
            if raw.len() > MAX_LINE_BYTES {
                return Err(JobError::new(
                    &at(0),
                    format!("the line is longer than fio's limit of {MAX_LINE_BYTES} bytes"),
                ));
            }
            let end = raw.find([';', '#']).unwrap_or(raw.len());
            let (line, start) = (raw[..end].trim(), end - raw[..end].trim_start().len());
            if line.is_empty() {
                continue;
            }
            if self.items.len() >= MAX_ITEMS {
                return Err(JobError::new(
                    &at(start),
                    format!("the file has more than {MAX_ITEMS} lines with a section or an option"),
                ));
            }
            if let Some(path) = line.strip_prefix("include").filter(|p| p.starts_with([' ', '\t']))
            {
                self.included(path.trim(), &at(start))?;
            } else if let Some(rest) = line.strip_prefix('[') {
                let name =
                    rest.strip_suffix(']').filter(|name| !name.is_empty()).ok_or_else(|| {
                        JobError::new(
                            &at(start),
                            format!("`{}` is not a section; write [name]", quoted(line)),
                        )
                    })?;
                let name = self.substitute(name, &at(start + 1))?;
                self.items.push((at(start), Item::Section(name)));
            } else {
                self.option(line, start, &at)?;
            }
        }
        self.open.pop();
        Ok(())
    }

    fn option(
        &mut self,
        line: &str,
        start: usize,
        at: &dyn Fn(usize) -> Position,
    ) -> Result<(), JobError> {
        let (key, value) =
            line.split_once('=').map_or((line, None), |(key, value)| (key, Some(value)));
        let column = start + key.len() + 1 + value.map_or(0, |v| v.len() - v.trim_start().len());
        let value_at = at(if value.is_some() { column } else { start });
        let value = value.map(|v| self.substitute(v.trim(), &value_at)).transpose()?;
        self.items.push((at(start), Item::Option { key: key.trim().to_owned(), value, value_at }));
        Ok(())
    }

    fn included(&mut self, path: &str, at: &Position) -> Result<(), JobError> {
        let path = self.substitute(path, at)?;
        if let Some(first) = self.open.iter().position(|open| **open == *path) {
            let chain: Vec<&str> =
                self.open[first..].iter().map(|p| &**p).chain([&*path]).collect();
            return Err(JobError::new(
                at,
                format!("files include each other: {}", chain.join(" -> ")),
            ));
        }
        if self.open.len() >= MAX_DEPTH || self.files >= MAX_FILES {
            return Err(JobError::new(
                at,
                format!(
                    "too many files are included; at most {MAX_DEPTH} files can include each \
                     other, and {MAX_FILES} files in all"
                ),
            ));
        }
        let text = (self.include)(&path)
            .map_err(|e| JobError::new(at, format!("cannot include `{path}`: {e}")))?;
        if text.len() as u64 > MAX_TEXT_BYTES {
            let why =
                format!("`{path}` is not a job file: it has more than {MAX_TEXT_BYTES} bytes");
            return Err(JobError::new(at, why));
        }
        self.read(&Arc::from(path), &text)
    }

    /// Replaces environment variables (`${NAME}`) and fio's keyword `$pagesize` by their values.
    fn substitute(&self, text: &str, at: &Position) -> Result<String, JobError> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            out.push_str(&rest[..dollar]);
            rest = &rest[dollar + 1..];
            let here =
                Position { column: at.column + (text.len() - rest.len() - 1) as u32, ..at.clone() };
            if let Some(inner) = rest.strip_prefix('{') {
                let Some((name, after)) = inner.split_once('}') else {
                    return Err(JobError::new(&here, "`${` has no `}` after it"));
                };
                let value = (self.env)(name).ok_or_else(|| {
                    JobError::new(
                        &here,
                        format!("environment variable `{}` is not set", quoted(name)),
                    )
                })?;
                out.push_str(&value);
                rest = after;
            } else if let Some(after) = rest.strip_prefix("pagesize") {
                out.push_str("4096");
                rest = after;
            } else if let Some(word) =
                ["ncpus", "mb_memory"].iter().find(|word| rest.starts_with(**word))
            {
                return Err(JobError::new(
                    &here,
                    format!("`${word}` depends on the machine; write a number instead"),
                ));
            } else if rest.starts_with("jobname")
                || rest.starts_with("jobnum")
                || rest.starts_with("filenum")
            {
                out.push('$');
            } else {
                return Err(JobError::new(
                    &here,
                    "`$` stands alone; write ${VARIABLE} or $pagesize",
                ));
            }
        }
        out.push_str(rest);
        if out.len() > MAX_LINE_BYTES {
            Err(JobError::new(
                at,
                format!(
                    "the line is longer than {MAX_LINE_BYTES} bytes after its variables are \
                     replaced"
                ),
            ))
        } else {
            Ok(out)
        }
    }
}

/// Returns at most 40 characters of `text` for an error, with control characters escaped.
pub(super) fn quoted(text: &str) -> String {
    let escaped: String = text.chars().take(41).flat_map(char::escape_debug).collect();
    if escaped.chars().count() <= 40 {
        escaped
    } else {
        escaped.chars().take(39).chain(['…']).collect()
    }
}
