//! Notes: sentences that a run prints together with its numbers. Each note has a code, which stays
//! the same when the sentence is reworded.
//!
//! A crate declares its notes with [`notes!`](crate::notes). Programs compare, rank and find notes
//! by their codes, never by their texts.

use serde::ser::{Serialize, Serializer};
use std::fmt;

/// A value that is inserted into the text of a note.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum NoteValue {
    /// A whole number.
    Count(u64),
    /// A number with a fraction. The text of the note determines the number of digits.
    Number(f64),
    /// A name, a path or a list.
    Text(String),
}

macro_rules! value_from {
    ($($from:ty => $kind:ident as $to:ty),*) => {
        $(impl From<$from> for NoteValue {
            fn from(value: $from) -> NoteValue {
                NoteValue::$kind(value as $to)
            }
        })*
    };
}

value_from!(u64 => Count as u64, u32 => Count as u64, usize => Count as u64, f64 => Number as f64);

impl From<String> for NoteValue {
    fn from(value: String) -> NoteValue {
        NoteValue::Text(value)
    }
}

impl From<&str> for NoteValue {
    fn from(value: &str) -> NoteValue {
        NoteValue::Text(value.to_owned())
    }
}

/// The declaration of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoteDef {
    /// Permanent name of the note, such as `map-changes-free`.
    pub code: &'static str,
    /// Rank of the note among the notes of a run. Notes with smaller ranks are printed first.
    pub rank: u8,
    /// Text of the note. `{name}` stands for a value, `{name:.1}` for a value with one decimal, and
    /// `{name:+.0}` for a value without decimals and with its sign.
    pub text: &'static str,
    /// Meaning of the note, and advice to the reader.
    pub advice: &'static str,
}

/// The rank of a note that is neither first nor last.
pub const RANK_MIDDLE: u8 = 50;

impl NoteDef {
    /// Returns the note without values.
    ///
    /// # Panics
    /// Panics if the text names a value.
    pub fn note(&self) -> Note {
        self.with([])
    }

    /// Returns the note with its values.
    ///
    /// # Panics
    /// Panics if the text names a value that is not among `values`.
    pub fn with<const N: usize>(&self, values: [(&'static str, NoteValue); N]) -> Note {
        let text = said(self.text, |name| values.iter().find(|v| v.0 == name).map(|v| &v.1));
        let text = text.unwrap_or_else(|name| panic!("note {}: no value {name}", self.code));
        Note { code: self.code, text, values: NoteValues(values.into()) }
    }
}

/// A note of a run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Note {
    /// The code of the note's declaration.
    pub code: &'static str,
    /// Text of the note, values included.
    pub text: String,
    /// Values of the note by name.
    pub values: NoteValues,
}

/// The values of a note by name, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoteValues(pub Vec<(&'static str, NoteValue)>);

impl Serialize for NoteValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the text of a note with its values inserted.
///
/// # Errors
/// Returns the name of the first value that is missing.
pub fn said<'t, 'v>(
    text: &'t str,
    value: impl Fn(&str) -> Option<&'v NoteValue>,
) -> Result<String, &'t str> {
    let mut found = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (place, behind) = after.split_once('}').ok_or(after)?;
        let (name, digits) = place.split_once(':').unwrap_or((place, ""));
        found.push_str(before);
        found.push_str(&shown(value(name).ok_or(name)?, digits));
        rest = behind;
    }
    found.push_str(rest);
    Ok(found)
}

/// Formats a value with the digits that `digits` asks for: `.1`, `+.0`, or nothing.
fn shown(value: &NoteValue, digits: &str) -> String {
    let wanted = digits.rsplit('.').next().and_then(|n| n.parse::<usize>().ok());
    match (value, wanted, digits.starts_with('+')) {
        (NoteValue::Number(x), Some(n), true) => format!("{x:+.n$}"),
        (NoteValue::Number(x), Some(n), false) => format!("{x:.n$}"),
        (NoteValue::Number(x), None, _) => x.to_string(),
        (NoteValue::Count(n), ..) => n.to_string(),
        (NoteValue::Text(text), ..) => text.clone(),
    }
}

/// Declares the notes of a crate, and the constant `NOTES` that lists them all.
///
/// ```
/// use flashatlas_types::notes;
///
/// notes! {
///     /// Units that were lost.
///     pub LOST = "units-lost", 10, "{units} units were lost", "Look at the record's `lost`.";
/// }
///
/// let note = LOST.with([("units", 3u64.into())]);
/// assert_eq!((note.code, note.text.as_str()), ("units-lost", "3 units were lost"));
/// assert_eq!(NOTES[0].code, "units-lost");
/// ```
#[macro_export]
macro_rules! notes {
    ($($(#[$doc:meta])* $vis:vis $name:ident = $code:literal, $rank:expr, $text:literal,
        $advice:literal;)*) => {
        $(
            $(#[$doc])*
            $vis const $name: $crate::NoteDef = $crate::NoteDef {
                code: $code,
                rank: $rank,
                text: $text,
                advice: $advice,
            };
        )*

        /// The notes of this crate.
        pub const NOTES: &[&$crate::NoteDef] = &[$(&$name),*];
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: NoteDef = NoteDef {
        code: "share",
        rank: RANK_MIDDLE,
        text: "{n} of {all} ({share:.0} %, trend {trend:+.1})",
        advice: "",
    };

    #[test]
    fn values_stand_in_the_text_with_their_digits() {
        let values = [
            ("n", 3u64.into()),
            ("all", "some".into()),
            ("share", 41.6.into()),
            ("trend", 0.25.into()),
        ];
        let note = SHARE.with(values);
        assert_eq!(note.to_string(), "3 of some (42 %, trend +0.2)");
        let json = serde_json::to_string(&note).unwrap();
        assert!(json.contains(r#""values":{"n":3,"all":"some","share":41.6,"trend":0.25}"#));
    }

    #[test]
    #[should_panic(expected = "note share: no value all")]
    fn a_value_that_the_text_names_is_given() {
        SHARE.with([("n", 3u64.into())]);
    }
}
