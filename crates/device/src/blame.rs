//! Who is to blame where keys that were written apart do not go together.
//!
//! A check of several keys names one of them, and that may stand in the preset while what has
//! changed is another. A configuration is a base (a preset, or a file that builds on none) with
//! settings over it, one key each: the lines of a file that builds on a preset, then `--set`.

use crate::params::SET;
use flashatlas_types::{ConfigError, RawConfig};

/// One key that was written over a base, and what was written for it.
#[derive(Clone, Debug)]
pub(crate) struct Setting(RawConfig);

impl Setting {
    /// Reads `key=value`.
    ///
    /// # Errors
    /// Text without `=`.
    pub fn parse(text: &str) -> Result<Setting, ConfigError> {
        let (key, value) = text.split_once('=').ok_or_else(|| {
            ConfigError::new(text, "expected key=value, such as ftl.victim=cost-benefit").at(SET)
        })?;
        let mut raw = RawConfig::default();
        raw.set(key.trim(), value.trim(), SET);
        Ok(Setting(raw))
    }

    /// Returns the settings that `file` makes over the preset that it builds on.
    ///
    /// # Errors
    /// As for [`one_capacity`].
    pub fn of_file(file: RawConfig) -> Result<Vec<Setting>, ConfigError> {
        one_capacity(&mut RawConfig::default(), &file)?;
        Ok(file.apart().into_iter().map(Setting).collect())
    }

    fn key(&self) -> Option<&str> {
        self.0.iter().next().map(|(key, _)| key)
    }
}

/// Returns `base` with `settings` over it, each over those before.
///
/// # Errors
/// As for [`one_capacity`].
pub(crate) fn laid<'a>(
    base: &RawConfig,
    settings: impl IntoIterator<Item = &'a Setting>,
) -> Result<RawConfig, ConfigError> {
    let mut raw = base.clone();
    for Setting(over) in settings {
        one_capacity(&mut raw, over)?;
        raw.overlay(over.clone());
    }
    Ok(raw)
}

/// Returns `error`, which `base` has with `settings` over it, as an error of the last setting
/// without which the base would not have it. `refused` says what is wrong with a configuration.
///
/// It stays as it is where the base has it alone, or where its key is one of those settings.
pub(crate) fn blamed(
    error: ConfigError,
    base: &RawConfig,
    settings: &[Setting],
    refused: impl Fn(RawConfig) -> Option<ConfigError>,
) -> ConfigError {
    let fails = |kept: &[&Setting]| {
        let raw = laid(base, kept.iter().copied()).ok();
        raw.and_then(&refused).is_some_and(|other| other.key == error.key)
    };
    if fails(&[]) {
        return error;
    }
    // one after the other is left out for good where the error stays without it
    let mut causes: Vec<&Setting> = settings.iter().collect();
    let mut at = 0;
    while at < causes.len() {
        let cause = causes.remove(at);
        if !fails(&causes) {
            causes.insert(at, cause);
            at += 1;
        }
    }
    let Ok(whole) = laid(base, settings) else { return error };
    let written = |key: &str| match whole.text(key) {
        Some(text) => format!("{key}={text} ({})", place(&whole, key)),
        None => key.to_owned(),
    };
    let mut keys = causes.iter().filter_map(|cause| cause.key());
    if keys.clone().any(|key| key == error.key) {
        return error;
    }
    // what was said last is what the user looks at
    let Some(last) = keys.next_back() else { return error };
    let ConfigError { key, why, nearest, allowed, .. } = error;
    let mut with = whole.text(last).unwrap_or_default().to_owned();
    keys.for_each(|other| with += &format!(" and {}", written(other)));
    let allowed = match &allowed[..] {
        [] => String::new(),
        allowed => format!("; {key} may be: {}", allowed.join(", ")),
    };
    let why = format!("with {with}, {} is refused: {why}{allowed}", written(&key));
    ConfigError { nearest, ..ConfigError::new(last, why).at(whole.place(last)) }
}

/// Where `key` was written, in words.
fn place(raw: &RawConfig, key: &str) -> String {
    match raw.place(key) {
        SET => format!("‹{SET}›"),
        place => place.to_owned(),
    }
}

/// Capacity is said in one of two ways: what is said later replaces the other.
fn one_capacity(raw: &mut RawConfig, over: &RawConfig) -> Result<(), ConfigError> {
    let keys = ["drive.logical_pages", "drive.over_provisioning"];
    let given = keys.map(|key| over.text(key).is_some_and(|text| text != "0"));
    match given {
        [true, true] => Err(ConfigError::new(
            keys[0],
            format!("is given together with {}: give one of the two", keys[1]),
        )
        .at(over.place(keys[0]))),
        [logical, share] => {
            if logical {
                raw.remove(keys[1]);
            }
            if share {
                raw.remove(keys[0]);
            }
            Ok(())
        }
    }
}
