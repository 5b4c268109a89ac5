//! Creation of a sink by the name of its format.

use crate::compress::encoder;
use crate::settings;
use crate::write::{Create, RecordSink, WriteOptions};
use crate::{FormatDef, Registry};
use flashatlas_types::{ConfigError, Entry};
use std::io::Write;

/// Name of the written format in errors.
const KEY: &str = "‹to_format›";

impl Registry {
    /// Returns a sink that writes `format` to `output`.
    ///
    /// `format` is a name, with parameters behind a colon if the format takes any. `compression` is
    /// `none`, `gz`, `bz2`, `xz` or `zst`.
    ///
    /// # Errors
    /// Returns an error if the format does not exist or is only read, if the compression does not
    /// exist, or if a parameter does not exist or is out of range.
    pub fn create(
        &self,
        format: &str,
        output: Box<dyn Write + Send>,
        compression: &str,
        options: &WriteOptions,
    ) -> Result<Box<dyn RecordSink>, ConfigError> {
        let (name, parameters) = settings::split_name(format);
        let written: Vec<&str> =
            self.formats.iter().filter(|f| f.writer.is_some()).map(|f| f.name).collect();
        let Ok(def) = self.formats.named(name) else {
            return Err(ConfigError::unknown(KEY, FormatDef::KIND, name, &written));
        };
        let Some(writer) = def.writer else {
            let allowed = written.into_iter().map(str::to_owned).collect();
            let why = format!("the format {name} can be read but not written");
            return Err(ConfigError { allowed, ..ConfigError::new(KEY, why) });
        };
        let params = settings::parse(parameters, name, writer.params)?;
        (writer.create)(Create { output: encoder(compression, output)?, params, options: *options })
    }
}

/// Returns a sink as [`Registry::create`] does, with the formats of this crate.
///
/// # Errors
/// Returns the errors of [`Registry::create`].
pub fn create(
    format: &str,
    output: Box<dyn Write + Send>,
    compression: &str,
    options: &WriteOptions,
) -> Result<Box<dyn RecordSink>, ConfigError> {
    Registry::STANDARD.create(format, output, compression, options)
}
