//! Search for the setting that causes an error about several keys.
//!
//! A check of several keys names one of them in its error. The preset may set the named key,
//! although the user changed another key. A configuration consists of a base and of settings that
//! override it. The base is a preset, or a file that builds on no preset. Each setting overrides
//! one key. The lines of a file that builds on a preset come first, then the settings of `--set`.

use crate::capacity;
use crate::params::{BLOCKS, CAPACITY, SET};
use flashatlas_types::{ConfigError, RawConfig};

/// A key that overrides a base, with its text.
#[derive(Clone, Debug)]
pub(crate) struct Setting(RawConfig);

impl Setting {
    /// Reads `key=value`.
    ///
    /// # Errors
    /// Returns an error if `text` has no `=`.
    pub fn parse(text: &str) -> Result<Setting, ConfigError> {
        let (key, value) = text.split_once('=').ok_or_else(|| {
            ConfigError::new(text, "expected key=value, such as ftl.victim=cost-benefit").at(SET)
        })?;
        let mut raw = RawConfig::default();
        raw.set(key.trim(), value.trim(), SET);
        Ok(Setting(raw))
    }

    /// Returns the settings of `file`. They override the preset that the file builds on.
    ///
    /// # Errors
    /// Returns the errors of [`capacity::overridden`].
    pub fn of_file(file: RawConfig) -> Result<Vec<Setting>, ConfigError> {
        capacity::overridden(&mut RawConfig::default(), &file)?;
        Ok(file.apart().into_iter().map(Setting).collect())
    }

    /// Returns the key that is overridden.
    pub fn key(&self) -> Option<&str> {
        self.0.iter().next().map(|(key, _)| key)
    }
}

/// Returns `base` overridden by `settings`. A later setting overrides an earlier setting.
///
/// # Errors
/// Returns the errors of [`capacity::overridden`].
pub(crate) fn laid<'a>(
    base: &RawConfig,
    settings: impl IntoIterator<Item = &'a Setting> + Clone,
) -> Result<RawConfig, ConfigError> {
    let mut raw = base.clone();
    for Setting(over) in settings.clone() {
        capacity::overridden(&mut raw, over)?;
        raw.overlay(over.clone());
    }
    let is_set = |key| settings.clone().into_iter().any(|setting| setting.key() == Some(key));
    if capacity::is_given(&raw) && is_set(CAPACITY.key()) && !is_set(BLOCKS.key()) {
        raw.remove(BLOCKS.key());
    }
    Ok(raw)
}

/// Returns `error` of `base` and `settings`, with the last setting that causes the error as its
/// key.
///
/// `refused` returns the error of a configuration. The error is returned unchanged if the base
/// without settings also fails with it, or if the key of the error is one of the settings.
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
    // removes each setting in turn, and puts it back if the error disappears
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
    // the error is about the last setting, because the user looks there first
    let Some(last) = keys.next_back() else { return error };
    let ConfigError { key, why, nearest, allowed, .. } = error;
    let mut with = whole.text(last).unwrap_or_default().to_owned();
    keys.for_each(|other| with += &format!(" and {}", written(other)));
    let allowed = match &allowed[..] {
        [] => String::new(),
        allowed => format!("; allowed values of {key}: {}", allowed.join(", ")),
    };
    let why = format!("with {with}, {} is refused: {why}{allowed}", written(&key));
    ConfigError { nearest, ..ConfigError::new(last, why).at(whole.place(last)) }
}

/// Returns the place where `key` was written, in words.
fn place(raw: &RawConfig, key: &str) -> String {
    match raw.place(key) {
        SET => format!("‹{SET}›"),
        place => place.to_owned(),
    }
}
