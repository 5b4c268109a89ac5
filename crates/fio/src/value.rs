//! Values of options: numbers with fio's suffixes, percentages, times, ranges, and lists by
//! direction.
//!
//! Each spelling has the same value as in fio 3.33, and `tests/suite/values.rs` compares it with
//! the value in fio. `k`, `kb` and `ki` are `kb_base` bytes. Only `kib` has the other base: 1000
//! bytes with `kb_base=1024`, the default. fio reads the suffixes in this way, although its manual
//! (`fio(1)`, "PARAMETER TYPES") says that `ki` means the same as `kib`.
//!
//! If fio silently drops a part of a value, the value is an error here. For example, fio reads
//! `1.5k` as 1, and `10sec` as 10 us.

use flashatlas_types::Dur;
use flashatlas_types::error::nearest;

/// Longest time in a job file: 200 days, because simulated time ends after 213 days.
pub(super) const MAX_TIME_US: u64 = 200 * 86_400 * 1_000_000;

/// Largest number that fio accepts.
pub(super) const MAX_NUMBER: u64 = i64::MAX as u64;
/// Largest value of the options that fio stores in 32 bits. fio drops the higher bits.
pub(super) const MAX_INT: u64 = u32::MAX as u64;

/// Values of one option by direction: read, write, trim.
pub(super) type ByDir<T> = [T; 3];

/// A number of bytes, or a share of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of the file's size.
    Percent(u32),
}

/// Text of a value, and the meaning of `k` in it.
#[derive(Clone, Copy)]
pub(super) struct Arg<'a> {
    /// Text; `None` if the option is written without `=`.
    pub text: Option<&'a str>,
    /// Number of bytes that `k` means: 1000 or 1024.
    pub kb_base: u64,
}

impl<'a> Arg<'a> {
    pub fn text(&self) -> Result<&'a str, String> {
        match self.text.map(str::trim) {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err("the option has no value; write a value after `=`".into()),
        }
    }

    /// Returns the value 0 or 1 as a flag; an option without a value is `true`.
    pub fn flag(&self) -> Result<bool, String> {
        if self.text.is_none() { Ok(true) } else { self.switch() }
    }

    /// Returns the value 0 or 1 as a flag. The value must be written, as fio demands.
    pub fn switch(&self) -> Result<bool, String> {
        match self.text()? {
            "1" => Ok(true),
            "0" => Ok(false),
            other => Err(format!("`{other}` is not a switch; give 0 or 1")),
        }
    }

    /// Returns a count from `low` to `high`. fio reads only the digits, so a suffix is an error.
    pub fn plain(&self, low: u64, high: u64) -> Result<u64, String> {
        let text = self.text()?;
        match text.parse() {
            Ok(n) => within(n, low, high),
            Err(_) => Err(format!("`{text}` is not a count; write only digits, such as 8")),
        }
    }

    /// Returns a number from `low` to `high`.
    pub fn int(&self, low: u64, high: u64) -> Result<u64, String> {
        self.number(self.text()?).and_then(|n| within(n, low, high))
    }

    /// Returns a number of bytes, which is at least one.
    pub fn size(&self) -> Result<u64, String> {
        self.number(self.text()?).and_then(|n| within(n, 1, MAX_NUMBER))
    }

    /// Returns a number of at least `low`, or a percentage of at most 100.
    ///
    /// The percentage is at least the smaller of `low` and 1.
    pub fn amount(&self, low: u64) -> Result<Amount, String> {
        match self.text()?.strip_suffix('%') {
            Some(percent) => {
                let percent = self.number(percent).and_then(|n| within(n, low.min(1), 100))?;
                Ok(Amount::Percent(percent as u32))
            }
            None => self.int(low, MAX_NUMBER).map(Amount::Bytes),
        }
    }

    /// Returns a time; a number without a unit counts `unit_us` microseconds.
    pub fn time(&self, unit_us: u64) -> Result<Dur, String> {
        time(self.text()?, unit_us)
    }

    /// Returns a time whose microseconds fit 32 bits, which is fio's limit.
    pub fn short_time(&self, unit_us: u64) -> Result<Dur, String> {
        let time = self.time(unit_us)?;
        if time <= Dur::from_us(MAX_INT) {
            Ok(time)
        } else {
            Err(format!("the time is too long; give at most {MAX_INT} us, which is fio's limit"))
        }
    }

    /// Returns one or two times, as in `5-10`.
    ///
    /// In `5-10ms`, fio applies the unit of the second time to the first, too. In `5s-10s` and
    /// `5s:10s`, fio drops the unit of the first time, so these spellings are errors here.
    pub fn times(&self, unit_us: u64) -> Result<(Dur, Dur), String> {
        let text = self.text()?;
        let Some(at) = [',', ':', '-'].iter().find_map(|&c| text.find(c)) else {
            return time(text, unit_us).map(|time| (time, time));
        };
        let (low, high) = (text[..at].trim(), text[at + 1..].trim());
        let unit = |text: &str| text.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned();
        let separator = &text[at..=at];
        if separator != ","
            && matches!(unit(low).to_ascii_lowercase().as_str(), "s" | "m" | "h" | "d")
        {
            return Err(format!(
                "fio reads the first time of `{text}` as microseconds; write a comma between the \
                 two times"
            ));
        }
        let low = if separator == "-" && unit(low).is_empty() {
            format!("{low}{}", unit(high))
        } else {
            low.to_owned()
        };
        let (low, high) = (time(&low, unit_us)?, time(high, unit_us)?);
        Ok((low.min(high), low.max(high)))
    }

    /// Reads `a`, `a,b` or `a,b,c` for reads, writes and trims into `into`.
    ///
    /// If no comma follows the last value, this value also applies to the remaining directions. An
    /// empty value changes nothing.
    pub fn by_dir<T: Clone>(
        &self,
        into: &mut ByDir<T>,
        parse: impl Fn(&Arg<'a>) -> Result<T, String>,
    ) -> Result<(), String> {
        let parts: Vec<&'a str> = self.text()?.split(',').collect();
        if parts.len() > 3 {
            return Err(format!(
                "{} values are given; give at most three: for reads, writes and trims",
                parts.len()
            ));
        }
        for (dir, slot) in into.iter_mut().enumerate() {
            let part = parts[dir.min(parts.len() - 1)].trim();
            if !part.is_empty() {
                *slot = parse(&Arg { text: Some(part), kb_base: self.kb_base })?;
            }
        }
        Ok(())
    }

    /// Returns the ends of `low-high` or `low:high`.
    ///
    /// The smaller end comes first, even if it is written last.
    pub fn range(&self) -> Result<(u64, u64), String> {
        let text = self.text()?;
        let (low, Some(high)) = split_range(text) else {
            return Err(format!("`{text}` is not a range; write a range such as 4k-16k"));
        };
        let one = |t| Arg { text: Some(t), kb_base: self.kb_base }.size();
        let (low, high) = (one(low)?, one(high)?);
        Ok((low.min(high), low.max(high)))
    }

    /// Returns the number in `text`, with its suffix.
    pub fn number(&self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        let bad = || format!("`{text}` is not a number; write a number such as 4096, 4k or 0x1000");
        let large = || format!("`{text}` is too large; give at most {MAX_NUMBER}");
        let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(hex) if hex.starts_with('+') => return Err(bad()),
            Some(hex) => u64::from_str_radix(hex, 16).map_err(|_| bad())?,
            None => {
                let digits = text.strip_prefix('+').unwrap_or(text);
                let split = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                if split == 0 {
                    return Err(bad());
                }
                let number: u64 = digits[..split].parse().map_err(|_| large())?;
                let suffix = digits[split..].to_ascii_lowercase();
                let factor = factor(&suffix, self.kb_base).ok_or_else(bad)?;
                number.checked_mul(factor).ok_or_else(large)?
            }
        };
        if number <= MAX_NUMBER { Ok(number) } else { Err(large()) }
    }

    /// Returns the number in `text` as [`Arg::number`] does, with a sign.
    pub fn signed(&self, text: &str) -> Result<i64, String> {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let n = self.number(rest)? as i64; // at most MAX_NUMBER, which fits an i64
        Ok(if negative { -n } else { n })
    }
}

/// Returns the choice called `got`, or an error that lists the names of all choices.
pub(super) fn one_of<T: Copy>(got: &str, what: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let names: Vec<&str> = choices.iter().map(|c| c.0).collect();
    choices.iter().find(|c| c.0 == got).map(|c| c.1).ok_or_else(|| {
        let hint =
            nearest(got, &names).map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
        format!("{what} `{got}` is not simulated{hint} (allowed: {})", names.join(", "))
    })
}

/// Returns `n` if it is from `low` to `high`, or an error.
fn within(n: u64, low: u64, high: u64) -> Result<u64, String> {
    match (low..=high).contains(&n) {
        true => Ok(n),
        false if high >= MAX_NUMBER => Err(format!("{n} is too small; give at least {low}")),
        false => Err(format!("{n} is out of range; give a number from {low} to {high}")),
    }
}

/// Returns the number of bytes of a suffix in lower case, or `None` if there is no such suffix.
///
/// Suffixes such as `kib` have the other base: 1000 if `kb_base` is 1024, and otherwise 1024.
fn factor(suffix: &str, kb_base: u64) -> Option<u64> {
    if matches!(suffix, "" | "b") {
        return Some(1);
    }
    let power = ["k", "m", "g", "t", "p"].iter().position(|p| suffix.starts_with(p))? as u32 + 1;
    let base = match &suffix[1..] {
        "" | "b" | "i" => kb_base,
        "ib" => 2024 - kb_base,
        _ => return None,
    };
    Some(base.pow(power))
}

/// Returns the two ends of a range, or the only number and `None`.
fn split_range(text: &str) -> (&str, Option<&str>) {
    match text.split_once('-').or_else(|| text.split_once(':')) {
        Some((low, high)) => (low.trim(), Some(high.trim())),
        None => (text.trim(), None),
    }
}

fn time(text: &str, unit_us: u64) -> Result<Dur, String> {
    let text = text.trim();
    let digits = text.strip_prefix('+').unwrap_or(text);
    let split = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let bad = || format!("`{text}` is not a time; write a time such as 10, 10s, 500ms or 2m");
    let factor = match digits[split..].to_ascii_lowercase().as_str() {
        "" => unit_us,
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        "sec" => {
            return Err(format!(
                "fio 3.33 reads `{text}` as microseconds, although its manual says seconds; write \
                 {}s",
                &digits[..split]
            ));
        }
        _ => return Err(bad()),
    };
    let number = digits[..split].parse::<u64>().map_err(|_| bad())?;
    match number.checked_mul(factor) {
        Some(us) if us <= MAX_TIME_US => Ok(Dur::from_us(us)),
        _ => Err(format!("`{text}` is too long; give at most 200 days")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str, kb_base: u64) -> Result<u64, String> {
        Arg { text: None, kb_base }.number(text)
    }

    #[test]
    fn suffixes_are_those_of_the_manual() {
        // the lines "4 KiB" and "1 MB" of fio(1), PARAMETER TYPES
        for text in ["4096", "4096b", "4096B", "4k", "4kb", "4kB", "4K", "4KB", "0x1000"] {
            assert_eq!(number(text, 1024), Ok(4096), "{text}");
        }
        for text in ["1000000", "1000kib", "1MiB", "+1mib"] {
            assert_eq!(number(text, 1024), Ok(1_000_000), "{text}");
        }
        // fio reads `6ki` as 6 times `kb_base`
        assert_eq!((number("6ki", 1024), number("6ki", 1000)), (Ok(6144), Ok(6000)));
        assert_eq!((number("1k", 1000), number("1kib", 1000)), (Ok(1000), Ok(1024)));
        assert_eq!(number("9223372036854775807", 1024), Ok(i64::MAX as u64));
        assert_eq!(number("1p", 1024), Ok(1 << 50));
        for text in ["", "k", "1.5k", "4x", "-4", "1i", "1ib", "1kbi", "20000p", "0x+1"] {
            assert!(number(text, 1024).is_err(), "{text}");
        }
        for text in ["9223372036854775808", "0x8000000000000000", "99999999999999999999"] {
            assert!(number(text, 1024).is_err(), "{text}");
        }
    }

    #[test]
    fn times_take_the_unit_of_their_option() {
        assert_eq!(time("10", 1), Ok(Dur::from_us(10)));
        assert_eq!(time("10", 1_000_000), Ok(Dur::from_us(10_000_000)));
        assert_eq!(time("5ms", 1_000_000), Ok(Dur::from_us(5000)));
        assert_eq!(time("2M", 1), Ok(Dur::from_us(120_000_000)));
        assert!(time("1y", 1).is_err() && time("201d", 1).is_err() && time("", 1).is_err());
        assert!(time("10sec", 1).is_err_and(|why| why.contains("microseconds")));
        let range = |text| Arg { text: Some(text), kb_base: 1024 }.times(1_000_000);
        let ms = |low: u64, high: u64| Ok((Dur::from_us(low * 1000), Dur::from_us(high * 1000)));
        assert_eq!(range("10-5"), ms(5_000, 10_000));
        assert_eq!((range("5-10ms"), range("5:10s")), (ms(5, 10), ms(5_000, 10_000)));
        assert_eq!((range("5s,10s"), range("5ms-1s")), (ms(5_000, 10_000), ms(5, 1_000)));
        assert!(range("5s-10s").is_err() && range("1m:2m").is_err() && range("1-2-3").is_err());
    }

    #[test]
    fn a_value_without_a_comma_is_also_that_of_the_directions_after() {
        let of = |text| {
            let mut three = [9, 9, 9];
            Arg { text: Some(text), kb_base: 1024 }.by_dir(&mut three, Arg::size).map(|()| three)
        };
        assert_eq!(of("1"), Ok([1, 1, 1]));
        assert_eq!(of("1,2"), Ok([1, 2, 2]));
        assert_eq!(of("1,2,"), Ok([1, 2, 9]));
        assert_eq!(of(",2"), Ok([9, 2, 2]));
        assert_eq!(of(",2,"), Ok([9, 2, 9]));
        assert!(of("1,2,3,4").is_err() && of("0").is_err());
    }
}
