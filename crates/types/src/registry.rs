//! Looking a name up in a registry: an explicit slice of entries that have names.

use crate::ConfigError;

/// The entry called `name`.
///
/// # Errors
/// Under `key`: that no such `what` is known, the nearest name, and all that exist.
pub fn by_name<T>(
    all: &'static [T],
    name_of: fn(&T) -> &'static str,
    key: &str,
    what: &str,
    name: &str,
) -> Result<&'static T, ConfigError> {
    all.iter().find(|entry| name_of(entry) == name).ok_or_else(|| {
        ConfigError::unknown(key, what, name, &all.iter().map(name_of).collect::<Vec<_>>())
    })
}
