//! Sections of a job file with their options, and checks of the options.

use super::catalogue::{OptionClass, known_options};
use super::definitions::{MODELLED, endless, left_out};
use super::error::{JobError, Position, Warning};
use super::lines::{Env, Include, Item, Lines, quoted};
use super::options::Options;
use super::replay::Replay;
use super::value::Arg;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of jobs of one file, clones included. fio has the same limit.
pub const MAX_JOBS: usize = 4096;

/// A job file that was read, and checked as far as this is possible without a drive.
#[derive(Clone, Debug)]
pub struct JobFile {
    /// The jobs, in order. The clones of a job are one section.
    pub sections: Vec<Section>,
    /// Options with a value in the global sections: the name in fio's list, and the value.
    pub global: Vec<(String, String)>,
    /// Parts that will not be simulated.
    pub warnings: Vec<Warning>,
}

/// A job.
#[derive(Clone, Debug)]
pub struct Section {
    /// Name of the job: the text in brackets, or the value of the option `name`.
    pub name: String,
    /// Place of the section.
    pub at: Position,
    /// Options of the section, and of the global sections above it.
    pub options: Arc<Options>,
    /// The logs that the clones of the job replay in turn.
    pub(super) replays: Vec<Arc<Replay>>,
}

/// Reads a job file.
///
/// `env` looks up environment variables. `include` reads the files that the job file includes, and
/// the logs that it replays.
///
/// # Errors
/// Returns an error for the first part that fio would refuse. Also returns an error for a part that
/// would change the requests and cannot be simulated.
pub fn parse(
    text: &str,
    file_name: &str,
    env: Env<'_>,
    include: Include<'_>,
) -> Result<JobFile, JobError> {
    let file = Arc::from(file_name);
    let mut lines = Lines::new(env, include);
    lines.read(&file, text)?;
    let mut reader = Reader::default();
    for (at, item) in std::mem::take(&mut lines.items) {
        match item {
            Item::Section(name) => reader.open(at, name)?,
            Item::Option { key, value, value_at } => reader.option(at, key, value, value_at)?,
        }
    }
    reader.close()?;
    check_waits(&reader.sections)?;
    read_logs(&mut reader.sections, include)?;
    if reader.sections.is_empty() {
        let at = Position { file, line: 1, column: 1 };
        return Err(JobError::new(
            &at,
            "the file has no job; write at least one section besides [global]",
        ));
    }
    let mut warnings: Vec<Warning> = reader.warnings.into_values().collect();
    warnings.sort_by(|a, b| {
        (a.at.line, a.at.column, &a.option).cmp(&(b.at.line, b.at.column, &b.option))
    });
    Ok(JobFile { sections: reader.sections, global: reader.global.given, warnings })
}

/// An option of the current section.
///
/// Options are applied at the end of the section, so that `kb_base` can be applied first.
struct GivenOption {
    at: Position,
    key: String,
    value: Option<String>,
    value_at: Position,
}

#[derive(Default)]
struct Reader {
    global: Options,
    sections: Vec<Section>,
    /// Warnings by option.
    warnings: BTreeMap<String, Warning>,
    current: Option<(Position, String)>,
    given: Vec<GivenOption>,
}

impl Reader {
    fn open(&mut self, at: Position, name: String) -> Result<(), JobError> {
        self.close()?;
        if self.sections.len() >= MAX_JOBS {
            return Err(JobError::new(&at, format!("more than {MAX_JOBS} jobs")));
        }
        self.current = Some((at, name));
        Ok(())
    }

    fn option(
        &mut self,
        at: Position,
        key: String,
        value: Option<String>,
        value_at: Position,
    ) -> Result<(), JobError> {
        if self.current.is_none() {
            return Err(JobError::new(
                &at,
                format!("`{}` stands before the first section", quoted(&key)),
            ));
        }
        self.given.push(GivenOption { at, key, value, value_at });
        Ok(())
    }

    /// Ends the current section: applies and checks its options.
    fn close(&mut self) -> Result<(), JobError> {
        let Some((at, name)) = self.current.take() else { return Ok(()) };
        let is_global = name == "global";
        let mut options = self.global.clone();
        if !is_global {
            options.given.clear();
        }
        let mut given = std::mem::take(&mut self.given);
        given.sort_by_key(|g| g.key != "kb_base"); // the sort is stable
        for one in &given {
            self.apply(&mut options, one)?;
        }
        if is_global {
            self.global = options;
            return Ok(());
        }
        check(&options, &at)?;
        for (option, why) in left_out(&options) {
            let at = options.places.get(option).unwrap_or(&at).clone();
            self.warn(option, at, why);
        }
        let name = options.name.clone().unwrap_or(name);
        self.sections.push(Section { name, at, options: Arc::new(options), replays: Vec::new() });
        Ok(())
    }

    fn apply(&mut self, options: &mut Options, given: &GivenOption) -> Result<(), JobError> {
        let key = given.key.as_str();
        let def =
            MODELLED.iter().find(|d| d.name == key || (!d.alias.is_empty() && d.alias == key));
        if let Some(value) = &given.value {
            options.given.push((def.map_or(key, |d| d.name).to_owned(), value.clone()));
        }
        if let Some(def) = def {
            let arg = Arg { text: given.value.as_deref(), kb_base: options.kb_base };
            (def.set)(options, &arg)
                .map_err(|why| JobError::new(&given.value_at, format!("{key}: {why}")))?;
            options.places.insert(def.name, given.value_at.clone());
            return Ok(());
        }
        match known_options().find(|known| known.name == key).map(|known| known.class) {
            None => {
                let names: Vec<&str> = known_options().map(|known| known.name).collect();
                Err(JobError::unknown(&given.at, &quoted(key), &names))
            }
            Some(OptionClass::Refused { instead, harmless }) => {
                match given.value.as_deref().map(str::trim) {
                    Some(value) if harmless.contains(&value) => Ok(()),
                    _ => Err(JobError::new(&given.value_at, format!("{key}: {instead}"))),
                }
            }
            Some(OptionClass::LeftOut { why }) => {
                let why = format!("this option has no influence on the requests: {why}");
                self.warn(key, given.at.clone(), &why);
                Ok(())
            }
            Some(OptionClass::Honoured) => unreachable!("found above"),
        }
    }

    fn warn(&mut self, option: &str, at: Position, why: &str) {
        let warning = Warning { at, option: option.to_owned(), why: why.to_owned() };
        self.warnings.entry(option.to_owned()).or_insert(warning);
    }
}

/// Reads the logs of the jobs that replay logs.
fn read_logs(sections: &mut [Section], include: Include<'_>) -> Result<(), JobError> {
    for section in sections {
        let replay = &section.options.replay;
        for log in &replay.logs {
            let at = section.options.places.get("read_iolog").unwrap_or(&section.at);
            let text = include(log)
                .map_err(|e| JobError::new(at, format!("read_iolog: cannot read `{log}`: {e}")))?;
            section.replays.push(Arc::new(Replay::read(replay, log, &text)?));
        }
    }
    Ok(())
}

/// Checks that each `wait_for` names exactly one earlier job, as fio demands.
fn check_waits(sections: &[Section]) -> Result<(), JobError> {
    for (number, section) in sections.iter().enumerate() {
        let Some(name) = &section.options.wait_for else { continue };
        let above: Vec<&str> = sections[..number].iter().map(|s| s.name.as_str()).collect();
        let found = above.iter().filter(|above| *above == name).count();
        if found != 1 {
            let at = section.options.places.get("wait_for").unwrap_or(&section.at);
            let why = match found {
                0 => format!(
                    "wait_for: no earlier job is called `{}` (earlier jobs: {})",
                    quoted(name),
                    above.join(", ")
                ),
                _ => format!("wait_for: {found} earlier jobs are called `{}`", quoted(name)),
            };
            return Err(JobError::new(at, why));
        }
    }
    Ok(())
}

/// Checks the options of one job against each other.
fn check(o: &Options, section: &Position) -> Result<(), JobError> {
    let at = |option: &str| o.places.get(option).unwrap_or(section);
    if endless(o) {
        return Err(JobError::new(
            at("time_based"),
            "time_based: the job would never end; give a runtime",
        ));
    }
    o.settling
        .check()
        .map_err(|(option, why)| JobError::new(at(option), format!("{option}: {why}")))?;
    let slow = |dir: &usize| (1..o.sizes[*dir].0).contains(&o.bytes_per_second(*dir));
    if o.poisson && (0..3).any(|dir| slow(&dir)) {
        let why = "rate_process: the rate is less than one request a second, and fio 3.33 crashes \
                   at such a rate";
        return Err(JobError::new(at("rate_process"), why));
    }
    o.zoning
        .check()
        .map_err(|(option, why)| JobError::new(at(option), format!("{option}: {why}")))?;
    for (dir, name) in ["reads", "writes", "trims"].iter().enumerate() {
        if o.rate[dir] > 0 && o.rate_iops[dir] > 0 {
            return Err(JobError::new(
                at("rate_iops"),
                format!("rate_iops: `rate` already limits {name}; give one of the two options"),
            ));
        }
    }
    let replays = !o.replay.logs.is_empty();
    let beside = [
        ("time_based", o.time_based, "of a job with time_based"),
        ("number_ios", o.number_ios.is_some(), "of a job with number_ios"),
    ];
    if let Some((option, _, which)) =
        beside.into_iter().find(|b| b.1 && o.pattern.write && o.reads_back() && !replays)
    {
        let why = format!(
            "{option}: reading back the data (`verify`) {which} is not simulated; use do_verify=0, \
             and add a job that reads the data after `stonewall`"
        );
        return Err(JobError::new(at(option), why));
    }
    if o.sizes_by_order && o.pattern.trim_then_write() {
        return Err(JobError::new(
            at("bs_is_seq_rand"),
            "bs_is_seq_rand: trims and writes need the same sizes",
        ));
    }
    Ok(())
}
