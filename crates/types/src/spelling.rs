//! The spelling of a run's options in messages.
//!
//! The library and a study write `mode=closed`, the command line writes `--mode closed`. In the
//! text of an error, an option is in angle quotes: `‹mode=closed›`. A caller that shows the error
//! on the command line formats the error with `{:#}`.

use std::fmt;

/// Writes the name of an option. With `{:#}`, the command-line spelling is used.
///
/// # Errors
/// Returns the errors of the formatter.
pub fn spell_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    if f.alternate() { write!(f, "--{}", name.replace('_', "-")) } else { f.write_str(name) }
}

/// Writes a text with its options in backticks. With `{:#}`, the command-line spelling is used.
///
/// # Errors
/// Returns the errors of the formatter.
pub fn spell(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let mut rest = text;
    while let Some((before, marked)) = rest.split_once('‹') {
        let (named, after) = marked.split_once('›').unwrap_or((marked, ""));
        write!(f, "{before}`")?;
        match named.split_once('=') {
            Some((name, value)) if f.alternate() => {
                spell_name(f, name)?;
                write!(f, " {value}`")?;
            }
            Some(_) => write!(f, "{named}`")?,
            None => {
                spell_name(f, named)?;
                f.write_str("`")?;
            }
        }
        rest = after;
    }
    f.write_str(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Text(String);

    impl fmt::Display for Text {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            spell(f, &self.0)
        }
    }

    #[test]
    fn options_are_spelt_as_their_reader_writes_them() {
        let said = "use ‹mode=closed› with a ‹time_gap_max›, not `mode=open` of the trace";
        let text = Text(said.into());
        let library = "use `mode=closed` with a `time_gap_max`, not `mode=open` of the trace";
        assert_eq!(text.to_string(), library);
        let command = "use `--mode closed` with a `--time-gap-max`, not `mode=open` of the trace";
        assert_eq!(format!("{text:#}"), command);
    }
}
