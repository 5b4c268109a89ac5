//! Numbers with a unit: sizes and times as they are written.

/// Unit suffixes: name, factor, and whether it is a time (in picoseconds) rather than bytes.
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

/// Whether `name` is a unit of size or of time.
pub(crate) fn is_unit(name: &str) -> bool {
    UNITS.iter().any(|(unit, ..)| unit.eq_ignore_ascii_case(name))
}

/// Parse a number with a unit of the wanted kind; a bare number is bytes, or zero time.
///
/// # Errors
/// What is wrong with the text, without its key.
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
                "`{unit}` is not a unit of {}",
                if time {
                    "time (ps, ns, us, ms, s, min, h)"
                } else {
                    "size (KiB, MiB, GiB, KB …)"
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
