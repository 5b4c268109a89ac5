//! Several traces on one drive: `merge:FILE,key=value;FILE,key=value`.
//!
//! Each part has its own range of the drive's addresses, and its address 0 is the start of this
//! range. If the end of a range is needed and not given, it is computed from the highest address of
//! the file. For this, the file is read once before the run.

use crate::RunError;
use crate::input::{Input, InputPart, Inputs, MERGED};
use crate::trace_name::{PartText, TraceName};
use flashatlas_types::quantity::quantity;
use flashatlas_types::{Dur, Param, ParamDef, Params, Ps, SECTOR_BYTES, Text};
use flashatlas_workload::{Begin, Merge, MergePart, settings_of};

/// Maximum number of parts of a merge, including copies. Each of them keeps a file open.
const MOST_PARTS: usize = 256;

/// Step of a range in sectors (1 MiB): a range that is computed from a file is rounded up to a
/// multiple of this step.
const RANGE_STEP: u64 = 2048;

/// Number of requests between two checks whether the user asked to stop.
const LOOK_EVERY: u64 = 65_536;

const AT: Param<Text> = Param::text(
    "at",
    "start of the part's range: bytes, or a share of the drive such as 50%; by default, the end of \
     the previous part's range",
)
.or("");
const SPACE: Param<Text> = Param::text(
    "space",
    "length of the part's range: bytes, or a share of the drive; larger addresses are taken modulo \
     this length. By default, the range ends at the first whole MiB after the highest address of \
     the file",
)
.or("");
const TIMES: Param<u64> = Param::int(
    "times",
    1,
    1 << 40,
    "number of passes over the file, one after the other, with the same addresses",
)
.or("1");
const GAP: Param<Text> = Param::text(
    "gap",
    "time from the last request of a pass to the first request of the next pass; by default, the \
     mean time between two requests of the pass",
)
.or("");
const BEGIN: Param<Text> = Param::text(
    "begin",
    "arrival of the part's first request; `recorded`: the time in the file, counted from the \
     earliest part with this setting",
)
.or("0s");
const REQUESTS: Param<Text> = Param::text(
    "requests",
    "requests that each pass plays: a number, or a share of all requests such as 50%",
)
.or("");
const COPIES: Param<u32> =
    Param::int("copies", 1, 256, "number of copies side by side, each in a range of its own")
        .or("1");
const DEVICE_MAP: Param<Text> =
    Param::text("device_map", "address spaces of the part: `collapse` or `select:N`").or("");

/// Settings of a part; `format` is the last, because its value may contain commas.
pub const MERGE_PARAMS: &[ParamDef] = &[
    AT.def,
    SPACE.def,
    TIMES.def,
    GAP.def,
    BEGIN.def,
    REQUESTS.def,
    COPIES.def,
    DEVICE_MAP.def,
    FORMAT.def,
];

const FORMAT: Param<Text> = Param::text(
    "format",
    "format of the file, if the content does not show it; this setting must be the last of a part, \
     because it takes the rest of the part",
)
.or("");

/// A part of a merge, with parsed settings.
struct Setup {
    path: String,
    format: Option<String>,
    params: Params,
}

/// A whole number, or a share in hundred-millionths.
enum Amount {
    Whole(u64),
    Share(u64),
}

/// A hundred per cent, in hundred-millionths.
const ALL: u64 = 100_000_000;

fn refuse<T>(path: &str, key: &str, why: &str) -> Result<T, RunError> {
    Err(RunError::option("trace", format!("merge: {path}: {key}: {why}")))
}

impl Setup {
    fn of(part: &PartText) -> Result<Setup, RunError> {
        let text = part.settings.as_str();
        let format = text
            .split_once("format=")
            .filter(|(before, _)| before.trim_end().is_empty() || before.trim_end().ends_with(','));
        let (rest, format) = match format {
            Some((before, format)) => (before.trim_end().trim_end_matches(','), Some(format)),
            None => (text, None),
        };
        let params = settings_of(&format!("part:{rest}"), &["part"], "part", MERGE_PARAMS);
        let params = params
            .map_err(|error| RunError::option("trace", format!("merge: {}: {error}", part.path)))?;
        if format.is_some_and(|format| format.trim().is_empty()) {
            return refuse(&part.path, "format", "has no value");
        }
        Ok(Setup {
            path: part.path.clone(),
            format: format.map(|format| format.trim().to_owned()),
            params,
        })
    }

    /// Returns the value of `param`: a percentage, or a number that `whole` parses.
    fn amount(
        &self,
        param: Param<Text>,
        whole: impl Fn(&str) -> Result<u64, String>,
    ) -> Result<Option<Amount>, RunError> {
        let text = self.params.get(param);
        let wrong = |why: String| refuse(&self.path, param.key(), &why);
        if text.is_empty() {
            return Ok(None);
        }
        match text.strip_suffix('%') {
            Some(number) => match hundredths(number.trim()) {
                Some(share) => Ok(Some(Amount::Share(share))),
                None => wrong(format!("`{text}` is not a share; give 0% to 100%")),
            },
            None => match whole(text) {
                Ok(number) => Ok(Some(Amount::Whole(number))),
                Err(why) => wrong(why),
            },
        }
    }

    /// Returns the value of `param` in sectors, on a drive of `capacity` sectors.
    fn sectors(&self, param: Param<Text>, capacity: Option<u64>) -> Result<Option<u64>, RunError> {
        let sector = u64::from(SECTOR_BYTES);
        match self.amount(param, |text| quantity(text, false))? {
            None => Ok(None),
            Some(Amount::Whole(bytes)) if bytes % sector == 0 => Ok(Some(bytes / sector)),
            Some(Amount::Whole(bytes)) => {
                let why = format!(
                    "{bytes} bytes are not a whole number of sectors; give a multiple of 512"
                );
                refuse(&self.path, param.key(), &why)
            }
            Some(Amount::Share(share)) => match capacity {
                Some(capacity) => Ok(Some(of(share, capacity))),
                None => refuse(
                    &self.path,
                    param.key(),
                    "a share of a drive can be used only in a run, which has a drive; write bytes",
                ),
            },
        }
    }

    fn time(&self, param: Param<Text>, text: &str) -> Result<Dur, RunError> {
        quantity(text, true).map(Dur).or_else(|why| refuse(&self.path, param.key(), &why))
    }
}

/// Returns `share` hundred-millionths of `whole`, without its fraction.
fn of(share: u64, whole: u64) -> u64 {
    let part = u128::from(share) * u128::from(whole) / u128::from(ALL);
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// Returns a percentage with at most six decimals, in hundred-millionths; `None` for other texts.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 6 {
        return None;
    }
    let share = format!("{whole}{fraction:0<6}").parse().ok();
    share.filter(|share| *share <= ALL)
}

impl<'a> Inputs<'a> {
    /// Opens the parts of a merge; `format` is the format of every part that names none.
    pub(crate) fn merged(
        &self,
        parts: &[PartText],
        format: Option<&str>,
        hashed: bool,
    ) -> Result<Input<'a>, RunError> {
        let setups: Vec<Setup> = parts.iter().map(Setup::of).collect::<Result<_, _>>()?;
        let all = |setup: &Setup| setup.params.get(COPIES) as usize;
        if setups.iter().map(all).sum::<usize>() > MOST_PARTS {
            let why = format!("a merge has more than {MOST_PARTS} parts and copies");
            return Err(RunError::option("trace", why));
        }
        let (mut opened, mut said, mut next) = (Vec::new(), Vec::new(), 0);
        let mut resolved = Vec::new();
        for (number, setup) in setups.iter().enumerate() {
            let format = setup.format.as_deref().or(format);
            for copy in 0..setup.params.get(COPIES) {
                let followed = copy + 1 < setup.params.get(COPIES)
                    || setups.get(number + 1).is_some_and(|next| next.params.get(AT).is_empty());
                let found =
                    self.part(setup, format, (copy, next, followed), hashed && copy == 0)?;
                next = found.1.start_bytes / u64::from(SECTOR_BYTES)
                    + found.1.bytes.map_or(0, |bytes| bytes / u64::from(SECTOR_BYTES));
                if copy == 0 {
                    let text = parts[number].settings.clone();
                    resolved.push(PartText { path: found.1.path.clone(), settings: text });
                }
                opened.push(found.0);
                said.push(found.1);
            }
        }
        let names: Vec<String> = said.iter().map(|part| part.path.clone()).collect();
        let source = Merge::new(opened).map_err(|(number, error)| RunError::Trace {
            path: names[number].clone(),
            error: Box::new(error),
        })?;
        let length =
            said.iter().map(|part: &InputPart| Some(part.length? * part.times.unwrap_or(1))).sum();
        Ok(Input {
            name: TraceName::Merge(resolved).text(),
            format: MERGED,
            compression: "none",
            operations: said.iter().all(|part| part.operations),
            timed: true,
            source: Box::new(source),
            length,
            parts: said,
        })
    }

    /// Opens a part, or one of its copies.
    ///
    /// `next` is the first sector behind the range of the previous part. `followed` is `true` if
    /// the next part begins where this part ends.
    fn part(
        &self,
        setup: &Setup,
        format: Option<&str>,
        (copy, next, followed): (u32, u64, bool),
        hashed: bool,
    ) -> Result<(MergePart<'a>, InputPart), RunError> {
        let (params, path) = (&setup.params, setup.path.as_str());
        let mut options = self.options;
        if !params.get(DEVICE_MAP).is_empty() {
            options.device_map = params
                .get(DEVICE_MAP)
                .parse()
                .map_err(|error| RunError::option("trace", format!("merge: {path}: {error}")))?;
        }
        let (file, said) = self.opened(path, format, hashed, &options)?;
        if !file.times {
            let why = format!(
                "the format {} carries no times, but a merge needs times to order the requests",
                said.format
            );
            return refuse(path, "format", &why);
        }
        let at = if copy == 0 { setup.sectors(AT, self.capacity)? } else { None };
        let start = at.unwrap_or(next);
        let given = setup.sectors(SPACE, self.capacity)?;
        if given == Some(0) {
            return refuse(path, SPACE.key(), "the range is empty; give at least one sector");
        }
        let requests = setup.amount(REQUESTS, flashatlas_types::quantity::count)?;
        let by_share = matches!(requests, Some(Amount::Share(_)));
        let measured = if by_share || (followed && given.is_none()) {
            Some(self.measured(path, format, &options)?)
        } else {
            None
        };
        let range = given.or(measured.map(|(_, end)| end.next_multiple_of(RANGE_STEP)));
        let requests = match (requests, measured) {
            (Some(Amount::Share(share)), Some((all, _))) => of(share, all),
            (Some(Amount::Whole(number)), _) => number,
            _ => u64::MAX,
        };
        if requests == 0 {
            return refuse(path, REQUESTS.key(), "no request is left; leave at least one request");
        }
        let gap = match params.get(GAP) {
            "" => None,
            text => Some(setup.time(GAP, text)?),
        };
        let begin = match params.get(BEGIN) {
            "recorded" => Begin::Recorded,
            text => Begin::At(Ps(setup.time(BEGIN, text)?.0)),
        };
        let sector = u64::from(SECTOR_BYTES);
        let said = InputPart {
            start_bytes: start.saturating_mul(sector),
            bytes: range.map(|range| range.saturating_mul(sector)),
            times: Some(params.get(TIMES)),
            requests: Some(requests).filter(|requests| *requests < u64::MAX),
            ..said
        };
        let again = self.again();
        let (name, format) = (path.to_owned(), format.map(str::to_owned));
        let reopen = Box::new(move || {
            let opened = again.opened(&name, format.as_deref(), false, &options);
            opened.map(|(opened, _)| opened.source).map_err(|error| error.to_string())
        });
        let part = MergePart {
            name: said.path.clone(),
            source: file.source,
            reopen,
            begin,
            times: params.get(TIMES),
            gap,
            requests,
            start,
            space: given,
        };
        Ok((part, said))
    }

    /// Returns the number of requests of a file, and the sector behind its highest address.
    ///
    /// The file is read once, and the result is kept.
    fn measured(
        &self,
        path: &str,
        format: Option<&str>,
        options: &flashatlas_workload::ReadOptions,
    ) -> Result<(u64, u64), RunError> {
        let key = format!("{path}\0{format:?}\0{options:?}");
        if let Some(known) =
            self.measured.lock().expect("no thread panics while it holds the lock").get(&key)
        {
            return Ok(*known);
        }
        let mut input = self.one(path, format, false, options)?;
        let (mut requests, mut end) = (0, 0);
        while let Some(record) = input.next_record()? {
            requests += 1;
            end = end.max(record.request.lba.0 + u64::from(record.request.sectors));
            if requests % LOOK_EVERY == 0 && self.opener.stopped() {
                return Err(RunError::Interrupted);
            }
        }
        self.measured
            .lock()
            .expect("no thread panics while it holds the lock")
            .insert(key, (requests, end));
        Ok((requests, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact() {
        assert_eq!(hundredths("50"), Some(50_000_000));
        assert_eq!(hundredths("33.333333"), Some(33_333_333));
        assert_eq!(of(29_000_000, 100), 29, "floating-point 0.29 * 100 is less than 29");
        assert_eq!((hundredths("101"), hundredths("-1"), hundredths("")), (None, None, None));
    }
}
