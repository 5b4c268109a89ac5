//! `NAME` and `NAME:key=value,key=value`: the parameters of formats and generators as text.

use flashatlas_types::params::RawConfig;
use flashatlas_types::{ConfigError, ParamDef, Params};

/// Splits `spec` into the name and the settings behind its colon. Without a colon the settings are
/// empty.
pub(crate) fn split_name(spec: &str) -> (&str, &str) {
    let (name, settings) = spec.split_once(':').unwrap_or((spec, ""));
    (name.trim(), settings)
}

/// Returns the values that `settings` give to the parameters `defs`, and defaults for the others.
/// `name` is the name of the part in errors.
///
/// # Errors
/// Returns an error for an unknown parameter (with the nearest name), for a parameter given twice
/// or without a value, and for values that are out of range.
pub(crate) fn parse(
    settings: &str,
    name: &str,
    defs: &'static [ParamDef],
) -> Result<Params, ConfigError> {
    let mut raw = RawConfig::default();
    for setting in settings.split(',').map(str::trim).filter(|s| !s.is_empty()) {
        if defs.is_empty() {
            return Err(ConfigError::new(setting, format!("`{name}` takes no parameters")).at(name));
        }
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| ConfigError::new(setting, "has no value: write key=value").at(name))?;
        let key = key.trim();
        check_key(key, defs).map_err(|e| e.at(name))?;
        if raw.text(key).is_some() {
            return Err(ConfigError::new(key, "is given twice").at(name));
        }
        raw.set(key, value.trim(), name);
    }
    let defs: Vec<&'static ParamDef> = defs.iter().collect();
    raw.resolve(&defs, |_| None).map_err(|e| e.at(name))
}

/// Checks that there is a parameter `key`; the error names the nearest key.
fn check_key(key: &str, defs: &[ParamDef]) -> Result<(), ConfigError> {
    let names: Vec<&str> = defs.iter().map(|p| p.key).collect();
    if names.contains(&key) {
        return Ok(());
    }
    // `unknown` finds the nearest name; the error is about the unknown key itself
    Err(ConfigError { key: key.to_owned(), ..ConfigError::unknown(key, "parameter", key, &names) })
}

/// Returns the parameters of a part that is chosen by name.
///
/// `text` is `NAME` or `NAME:key=value,key=value`, with a name out of `names`.
///
/// # Errors
/// Returns an error under `key` for a name outside `names` (with the nearest name). The errors of
/// parameters are the same as for generators.
pub fn settings_of(
    text: &str,
    names: &[&str],
    key: &str,
    defs: &'static [ParamDef],
) -> Result<Params, ConfigError> {
    let (name, settings) = split_name(text);
    if !names.contains(&name) {
        return Err(ConfigError::unknown(key, key, name, names));
    }
    parse(settings, name, defs)
}
