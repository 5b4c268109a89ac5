//! Parsing of numbers with a unit: sizes, times, rates, counts and ratios.

/// Unit suffixes: name, factor, and whether the unit is a time (in picoseconds) or a size (in
/// bytes).
const UNITS: &[(&str, u64, bool)] = &[
    ("ps", 1, true),
    ("ns", 1_000, true),
    ("us", 1_000_000, true),
    ("ms", 1_000_000_000, true),
    ("s", 1_000_000_000_000, true),
    ("min", 60_000_000_000_000, true),
    ("h", 3_600_000_000_000_000, true),
    ("b", 1, false),
    ("kib", 1 << 10, false),
    ("mib", 1 << 20, false),
    ("gib", 1 << 30, false),
    ("tib", 1 << 40, false),
    ("kb", 1_000, false),
    ("mb", 1_000_000, false),
    ("gb", 1_000_000_000, false),
    ("tb", 1_000_000_000_000, false),
    ("k", 1 << 10, false),
    ("m", 1 << 20, false),
    ("g", 1 << 30, false),
];

/// The smallest rate that is accepted without a unit.
const LEAST_BARE_RATE: u64 = 1_000_000;

/// Suffixes of a count and their factors: `100k` is 100,000.
const COUNT_UNITS: &[(char, u64)] = &[('k', 1_000), ('m', 1_000_000), ('g', 1_000_000_000)];

/// Parses a count such as `20000`, `20_000`, `100k`, `1.5M` or `1e6`.
///
/// # Errors
/// Returns the fault of the text, without its key.
pub fn count(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is not a whole number");
    let lower = text.trim().replace('_', "").to_ascii_lowercase();
    let (number, factor) = match lower.chars().last() {
        Some(last) if COUNT_UNITS.iter().any(|unit| unit.0 == last) => {
            let factor = COUNT_UNITS.iter().find(|unit| unit.0 == last).map_or(1, |unit| unit.1);
            (&lower[..lower.len() - 1], factor)
        }
        _ => (&lower[..], 1),
    };
    let (digits, exponent) = number.split_once('e').unwrap_or((number, "0"));
    let exponent: u32 = exponent.parse().map_err(|_| bad())?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || fraction.len() > 15 {
        return Err(bad());
    }
    let large = || format!("`{text}` is too large");
    let scale = 10u128.pow(fraction.len() as u32);
    let total = format!("{whole}{fraction}")
        .parse::<u128>()
        .ok()
        .zip(10u128.checked_pow(exponent))
        .and_then(|(digits, power)| digits.checked_mul(power)?.checked_mul(u128::from(factor)))
        .ok_or_else(large)?;
    if total % scale != 0 {
        return Err(bad());
    }
    u64::try_from(total / scale).map_err(|_| large())
}

/// Parses a ratio: `0.07` or `7%`.
///
/// # Errors
/// Returns the fault of the text, without its key.
pub fn ratio(text: &str) -> Result<f64, String> {
    let bad = || format!("`{text}` is not a number");
    match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|x| x / 100.0).map_err(|_| bad()),
        None => text.trim().parse().map_err(|_| bad()),
    }
}

/// Parses bytes a second: `200MB`, `200MB/s`, or 0. A number without a unit is accepted if it is at
/// least 1,000,000. In a smaller number, the unit was probably forgotten.
///
/// # Errors
/// Returns the fault of the text, without its key.
pub fn rate(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let bytes = quantity(text.strip_suffix("/s").unwrap_or(text), false)?;
    let bare = text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if bare && (1..LEAST_BARE_RATE).contains(&bytes) {
        Err(format!("`{text}` has no unit, and would mean bytes a second"))
    } else {
        Ok(bytes)
    }
}

/// Returns whether `name` is a unit of size or of time.
pub(crate) fn is_unit(name: &str) -> bool {
    UNITS.iter().any(|(unit, ..)| unit.eq_ignore_ascii_case(name))
}

/// Returns the names of the units of time, or of size.
pub(crate) fn units(time: bool) -> Vec<&'static str> {
    UNITS.iter().filter(|unit| unit.2 == time).map(|unit| unit.0).collect()
}

/// Parses a number with a unit of time if `time` is `true`, otherwise with a unit of size.
///
/// A size without a unit is in bytes. Zero is the only time that needs no unit.
///
/// # Errors
/// Returns the fault of the text, without its key.
pub fn quantity(text: &str, time: bool) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..split].trim(), text[split..].trim().to_ascii_lowercase());
    let factor = match UNITS.iter().find(|(name, _, is_time)| *name == unit && *is_time == time) {
        Some(&(_, factor, _)) => factor,
        None if unit.is_empty() && (!time || number == "0") => 1,
        None if unit.is_empty() => {
            return Err(format!("`{text}` has no unit (ps, ns, us, ms, s, min, h)"));
        }
        None => {
            return Err(format!(
                "`{}` is not a unit of {}",
                text[split..].trim(),
                if time {
                    "time (ps, ns, us, ms, s, min, h)"
                } else {
                    "size (B, KB, MB, GB, TB, KiB, MiB, GiB, TiB)"
                }
            ));
        }
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let bad = || format!("`{text}` is not a number with a unit");
    if fraction.len() > 15
        || !fraction.bytes().all(|b| b.is_ascii_digit())
        || (whole.is_empty() && fraction.is_empty())
    {
        return Err(bad());
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let whole: u64 =
        if whole.is_empty() { 0 } else { whole.replace('_', "").parse().map_err(|_| bad())? };
    let fraction: u128 =
        if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| bad())? };
    let total = u128::from(whole)
        .checked_mul(scale)
        .and_then(|n| (n + fraction).checked_mul(u128::from(factor)));
    let total = total.ok_or_else(|| format!("`{text}` is too large"))?;
    if total % scale != 0 {
        return Err(format!(
            "`{text}` is not a whole number of {}",
            if time { "picoseconds" } else { "bytes" }
        ));
    }
    u64::try_from(total / scale).map_err(|_| format!("`{text}` is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_written_as_people_do() {
        let of = |text| count(text).ok();
        assert_eq!(
            (of("20_000"), of("100k"), of("1.5M")),
            (Some(20_000), Some(100_000), Some(1_500_000))
        );
        assert_eq!(
            (of("1e6"), of("2.5e3"), of("1G")),
            (Some(1_000_000), Some(2_500), Some(1_000_000_000))
        );
        assert_eq!(of("18446744073709551615"), Some(u64::MAX));
        for wrong in ["", "k", "-1", "1.5", "1e-3", "2e", "1 2", "0.0001k", "e5", "x", "1kk"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        for large in ["1e99", "18446744073709551616", "9e19k"] {
            assert_eq!(count(large), Err(format!("`{large}` is too large")));
        }
    }

    #[test]
    fn rates_have_a_unit() {
        assert_eq!(
            (rate("200MB"), rate("200MB/s"), rate("0")),
            (Ok(200_000_000), Ok(200_000_000), Ok(0))
        );
        assert_eq!((rate("1000B"), rate("333000000")), (Ok(1000), Ok(333_000_000)));
        assert_eq!(rate("200"), Err("`200` has no unit, and would mean bytes a second".into()));
        assert!(rate("200us").is_err() && rate("MB/s").is_err());
    }

    #[test]
    fn ratios_may_be_percentages() {
        assert_eq!((ratio("7%"), ratio(" 0.07")), (Ok(0.07), Ok(0.07)));
        assert_eq!(ratio("%"), Err("`%` is not a number".into()));
    }
}
