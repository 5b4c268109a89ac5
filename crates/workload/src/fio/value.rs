//! Values of options: numbers with fio's suffixes, percentages, times, ranges and lists by
//! direction.
//!
//! Suffixes are those of `fio(1)`, "PARAMETER TYPES". With `kb_base=1024`, the default, `k` is 1024
//! and `ki` is 1000; with `kb_base=1000` it is the other way round. Where fio reads `1.5k` as 1 and
//! drops the rest, this is an error.

use flashatlas_types::Dur;
use flashatlas_types::error::nearest;

/// Longest time that a job file may name: simulated time ends after 213 days.
const MAX_TIME_US: u64 = 200 * 86_400 * 1_000_000;

/// Values of one option by direction: read, write, trim.
pub(super) type ByDir<T> = [T; 3];

/// A number of bytes, or a share of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent of the file's size.
    Percent(u32),
}

/// The text of a value, and what `k` means in it.
#[derive(Clone, Copy)]
pub(super) struct Arg<'a> {
    /// `None` when the option stands alone, without `=`.
    pub text: Option<&'a str>,
    /// 1000 or 1024.
    pub kb_base: u64,
}

impl<'a> Arg<'a> {
    pub fn text(&self) -> Result<&'a str, String> {
        match self.text.map(str::trim) {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err("no value; expected one after `=`".into()),
        }
    }

    /// True when it stands alone.
    pub fn flag(&self) -> Result<bool, String> {
        match self.text.map(str::trim) {
            None | Some("1" | "true") => Ok(true),
            Some("0" | "false") => Ok(false),
            Some(other) => Err(format!("`{other}` is no switch; expected 0 or 1")),
        }
    }

    /// A number from `low` on, and at most `high`.
    pub fn int(&self, low: u64, high: u64) -> Result<u64, String> {
        self.number(self.text()?).and_then(|n| within(n, low, high))
    }

    /// A number of bytes, at least one.
    pub fn size(&self) -> Result<u64, String> {
        self.number(self.text()?).and_then(|n| within(n, 1, u64::MAX))
    }

    /// A number or a percentage from 1 to 100.
    pub fn amount(&self, low: u64) -> Result<Amount, String> {
        match self.text()?.strip_suffix('%') {
            Some(percent) => {
                let percent = self.number(percent).and_then(|n| within(n, low.min(1), 100))?;
                Ok(Amount::Percent(percent as u32))
            }
            None => self.int(low, u64::MAX).map(Amount::Bytes),
        }
    }

    /// A time; a number without a unit counts `unit_us` microseconds.
    pub fn time(&self, unit_us: u64) -> Result<Dur, String> {
        time(self.text()?, unit_us)
    }

    /// One or two times, as in `5-10`.
    pub fn times(&self, unit_us: u64) -> Result<(Dur, Dur), String> {
        let (low, high) = split_range(self.text()?);
        let low = time(low, unit_us)?;
        let high = high.map_or(Ok(low), |h| time(h, unit_us))?;
        Ok((low.min(high), low.max(high)))
    }

    /// `a`, `a,b` or `a,b,c` for reads, writes and trims, onto `into`. A value that no comma
    /// follows is also that of the directions after it; an empty one leaves what was there.
    pub fn by_dir<T: Clone>(
        &self,
        into: &mut ByDir<T>,
        parse: impl Fn(&Arg<'a>) -> Result<T, String>,
    ) -> Result<(), String> {
        let parts: Vec<&'a str> = self.text()?.split(',').collect();
        if parts.len() > 3 {
            return Err(format!(
                "{} values; expected at most three, for reads, writes and trims",
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

    /// `low-high` or `low:high`, in either order.
    pub fn range(&self) -> Result<(u64, u64), String> {
        let text = self.text()?;
        let (low, Some(high)) = split_range(text) else {
            return Err(format!("`{text}` is no range; expected one such as 4k-16k"));
        };
        let one = |t| Arg { text: Some(t), kb_base: self.kb_base }.size();
        let (low, high) = (one(low)?, one(high)?);
        Ok((low.min(high), low.max(high)))
    }

    /// A number with its suffix.
    pub fn number(&self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        let bad = || format!("`{text}` is no number; expected one such as 4096, 4k or 0x1000");
        if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            return u64::from_str_radix(hex, 16).map_err(|_| bad());
        }
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..split].parse().map_err(|_| match split {
            0 => bad(),
            _ => format!("`{text}` is too large; expected at most {}", u64::MAX),
        })?;
        let factor = factor(&text[split..].to_ascii_lowercase(), self.kb_base).ok_or_else(bad)?;
        number
            .checked_mul(factor)
            .ok_or_else(|| format!("`{text}` is too large; expected at most {}", u64::MAX))
    }

    /// As [`Arg::number`], with a sign.
    pub fn signed(&self, text: &str) -> Result<i64, String> {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let n = i64::try_from(self.number(rest)?).map_err(|_| format!("`{text}` is too large"))?;
        Ok(if negative { -n } else { n })
    }
}

/// One of `names`, or an error that lists them.
pub(super) fn one_of<T: Copy>(got: &str, what: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let names: Vec<&str> = choices.iter().map(|c| c.0).collect();
    choices.iter().find(|c| c.0 == got).map(|c| c.1).ok_or_else(|| {
        let hint =
            nearest(got, &names).map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
        format!("{what} `{got}` is not one that is simulated{hint} (allowed: {})", names.join(", "))
    })
}

/// `n`, if it is from `low` to `high`.
fn within(n: u64, low: u64, high: u64) -> Result<u64, String> {
    match (low..=high).contains(&n) {
        true => Ok(n),
        false if high == u64::MAX => Err(format!("{n} is too small; expected at least {low}")),
        false => Err(format!("{n} is out of range; expected {low} to {high}")),
    }
}

fn factor(suffix: &str, kb_base: u64) -> Option<u64> {
    let letters = suffix.strip_suffix('b').unwrap_or(suffix);
    let (prefix, other) = letters.strip_suffix('i').map_or((letters, false), |p| (p, true));
    let base = if other { 2024 - kb_base } else { kb_base };
    let power = match prefix {
        "" if !other => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    Some(base.pow(power))
}

/// The two ends of a range, or the only one.
fn split_range(text: &str) -> (&str, Option<&str>) {
    match text.split_once(['-', ':']) {
        Some((low, high)) => (low.trim(), Some(high.trim())),
        None => (text.trim(), None),
    }
}

fn time(text: &str, unit_us: u64) -> Result<Dur, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let factor = match text[split..].to_ascii_lowercase().as_str() {
        "" => unit_us,
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "s" | "sec" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err(format!("`{text}` is no time; expected one such as 10, 10s, 500ms or 2m")),
    };
    let number = text[..split].parse::<u64>();
    let number = number
        .map_err(|_| format!("`{text}` is no time; expected one such as 10, 10s, 500ms or 2m"))?;
    match number.checked_mul(factor) {
        Some(us) if us <= MAX_TIME_US => Ok(Dur::from_us(us)),
        _ => Err(format!("`{text}` is too long; expected at most 200 days")),
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
        for text in ["1000000", "1mi", "1000ki", "1MiB"] {
            assert_eq!(number(text, 1024), Ok(1_000_000), "{text}");
        }
        assert_eq!(number("1k", 1000), Ok(1000));
        assert_eq!(number("1kib", 1000), Ok(1024));
        assert_eq!(number("1p", 1024), Ok(1 << 50));
        for text in ["", "k", "1.5k", "4x", "-4", "1i", "1ib", "20000p", "99999999999999999999"] {
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
        let range = Arg { text: Some("10-5"), kb_base: 1024 }.times(1_000_000);
        assert_eq!(range, Ok((Dur::from_us(5_000_000), Dur::from_us(10_000_000))));
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
