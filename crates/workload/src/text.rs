//! Fields of a line and the numbers in them, decoded from bytes without allocation.

use crate::raw::{Extent, ExtentError, Fault, Time};
use flashatlas_types::HostOp;
use std::borrow::Cow;

/// A field: its bytes without surrounding blanks, and their start in the line.
#[derive(Clone, Copy, Default)]
pub struct Field<'a> {
    /// The bytes of the field.
    pub text: &'a [u8],
    /// The place of its first byte in the line.
    pub start: usize,
}

impl<'a> Field<'a> {
    fn between(line: &'a [u8], from: usize, to: usize) -> Field<'a> {
        let raw = &line[from..to];
        let text = raw.trim_ascii_start();
        Field { text: text.trim_ascii_end(), start: from + (raw.len() - text.len()) }
    }

    /// Returns a fault of this field.
    #[cold]
    pub fn fault(self, why: &'static str, expected: &'static str) -> Fault {
        Fault { why: Cow::Borrowed(why), expected, span: self.span(), kind: None }
    }

    fn span(self) -> (usize, usize) {
        (self.start, self.start + self.text.len())
    }

    #[cold]
    fn bad_number(self, expected: &'static str) -> Fault {
        self.fault(
            match self.text {
                [] => "an empty field",
                [b'-', rest @ ..] if rest.first().is_some_and(u8::is_ascii_digit) => {
                    "a negative number"
                }
                text if text.iter().all(u8::is_ascii_digit) => "a number that is too large",
                _ => "not a number",
            },
            expected,
        )
    }

    /// Returns the whole number in the field.
    ///
    /// # Errors
    /// Returns an error that names what was `expected` if the field is no number of 64 bits.
    pub fn number(self, expected: &'static str) -> Result<u64, Fault> {
        digits(self.text).ok_or_else(|| self.bad_number(expected))
    }

    /// Returns the whole number in the field. It is hexadecimal if `0x` stands before it, or if
    /// `hex` is set.
    pub(crate) fn number_in(self, hex: bool, expected: &'static str) -> Result<u64, Fault> {
        let prefixed = [b"0x", b"0X"].iter().find_map(|prefix| self.text.strip_prefix(*prefix));
        match prefixed.or(hex.then_some(self.text)) {
            Some(digits) => hexadecimal(digits).ok_or_else(|| self.bad_number(expected)),
            None => self.number(expected),
        }
    }

    /// Returns the time of a whole number of units of `unit_ps` picoseconds.
    pub(crate) fn time(self, unit_ps: u64, expected: &'static str) -> Result<Time, Fault> {
        let ps = u128::from(self.number(expected)?) * u128::from(unit_ps);
        Ok(Time { ps, span: self.span() })
    }

    /// Returns the time of a decimal number of units of `unit_ps` picoseconds (a power of ten).
    /// Digits below a picosecond are dropped.
    pub(crate) fn decimal_time(self, unit_ps: u64, expected: &'static str) -> Result<Time, Fault> {
        let (whole, fraction) = match memchr::memchr(b'.', self.text) {
            Some(dot) => (&self.text[..dot], &self.text[dot + 1..]),
            None => (self.text, &[][..]),
        };
        let bad = || self.bad_number(expected);
        let whole = if whole.is_empty() && !fraction.is_empty() {
            0
        } else {
            digits(whole).ok_or_else(bad)?
        };
        let (mut weight, mut part) = (unit_ps, 0);
        for &byte in fraction {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return Err(bad());
            }
            weight /= 10;
            part += u64::from(digit) * weight;
        }
        let ps = u128::from(whole) * u128::from(unit_ps) + u128::from(part);
        Ok(Time { ps, span: self.span() })
    }
}

/// Returns all of `text` as a hexadecimal number, or `None` if it is not one.
fn hexadecimal(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?;
    u64::from_str_radix(text, 16).ok()
}

/// Returns all of `text` as a decimal number, or `None` if it is not one.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let (safe, rest) = text.split_at(text.len().min(19));
    let mut number = 0u64;
    for &byte in safe {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit); // 19 digits stay below 10^19 < 2^64
    }
    for &byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(number)
}

/// Returns the fault of an address and a length that make no extent, in the field at fault.
pub(crate) fn extent_fault(error: ExtentError, address: Field<'_>, length: Field<'_>) -> Fault {
    error.fault(if error == ExtentError::TooFar { address.span() } else { length.span() })
}

/// Returns the sectors that cover `length` bytes at byte `offset`.
pub(crate) fn byte_extent(
    op: HostOp,
    offset: Field<'_>,
    length: Field<'_>,
) -> Result<Extent, Fault> {
    let (at, len) = (offset.number("an offset in bytes")?, length.number("a length in bytes")?);
    Extent::of_bytes(op, at, len).map_err(|e| extent_fault(e, offset, length))
}

/// Splits `line` at `separator` into its first `N` fields, and returns them with the number of all
/// fields.
#[inline]
pub(crate) fn split<const N: usize>(line: &[u8], separator: u8) -> ([Field<'_>; N], usize) {
    let mut fields = [Field::default(); N];
    let (mut count, mut from) = (0, 0);
    for to in memchr::memchr_iter(separator, line).chain([line.len()]) {
        if count < N {
            fields[count] = Field::between(line, from, to);
        }
        (count, from) = (count + 1, to + 1);
    }
    (fields, count)
}

/// Returns the fields of `line` between separators, or between blanks if `separator` is `None`.
pub(crate) fn fields(line: &[u8], separator: Option<u8>) -> impl Iterator<Item = Field<'_>> {
    let mut from = Some(0);
    std::iter::from_fn(move || {
        let start = from?;
        let Some(separator) = separator else {
            let skip = line[start..].iter().position(|b| !b.is_ascii_whitespace())?;
            let end = line[start + skip..].iter().position(u8::is_ascii_whitespace);
            let end = end.map_or(line.len(), |n| start + skip + n);
            from = Some(end);
            return Some(Field { text: &line[start + skip..end], start: start + skip });
        };
        let end = memchr::memchr(separator, &line[start..]).map(|n| start + n);
        from = end.map(|end| end + 1);
        Some(Field::between(line, start, end.unwrap_or(line.len())))
    })
}

/// Returns the `N` fields of `line` between separators, or `None` if there are fewer. If there are
/// more, the first field takes the rest.
pub(crate) fn rsplit<const N: usize>(line: &[u8], separator: u8) -> Option<[Field<'_>; N]> {
    let mut fields = [Field::default(); N];
    let mut to = line.len();
    for field in fields.iter_mut().skip(1).rev() {
        let from = memchr::memrchr(separator, &line[..to])?;
        *field = Field::between(line, from + 1, to);
        to = from;
    }
    fields[0] = Field::between(line, 0, to);
    Some(fields)
}

/// Splits `line` at blanks into its first `N` fields, and returns them with the number of all
/// fields.
pub(crate) fn split_blanks<const N: usize>(line: &[u8]) -> ([Field<'_>; N], usize) {
    let mut fields = [Field::default(); N];
    let (mut count, mut at) = (0, 0);
    while let Some(skip) = line[at..].iter().position(|b| !b.is_ascii_whitespace()) {
        let from = at + skip;
        let to =
            line[from..].iter().position(u8::is_ascii_whitespace).map_or(line.len(), |n| from + n);
        if count < N {
            fields[count] = Field { text: &line[from..to], start: from };
        }
        (count, at) = (count + 1, to);
    }
    (fields, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> Field<'_> {
        Field { text: text.as_bytes(), start: 0 }
    }

    #[test]
    fn numbers_are_exact_up_to_the_last_and_checked_beyond() {
        let why = |text| field(text).number("n").unwrap_err().why;
        assert_eq!(field("18446744073709551615").number("n").unwrap(), u64::MAX);
        assert_eq!(field("000000000000000000000000007").number("n").unwrap(), 7);
        assert_eq!(why("18446744073709551616"), "a number that is too large");
        assert_eq!(why("-1"), "a negative number");
        assert_eq!(why(""), "an empty field");
        assert_eq!(why("-"), "not a number");
        assert_eq!(why("12x"), "not a number");
        assert_eq!(why("0000000000000000000x"), "not a number");
    }

    #[test]
    fn times_are_exact_picoseconds() {
        const S: u64 = 1_000_000_000_000;
        let ps = |text| field(text).decimal_time(S, "t").ok().map(|time| time.ps);
        assert_eq!(ps("1.000000000001"), Some(1_000_000_000_001));
        assert_eq!(ps("0.1"), Some(100_000_000_000), "a tenth, which no binary fraction is");
        assert_eq!(ps("0.0000000000019"), Some(1), "below a picosecond is dropped");
        assert_eq!(
            ps("18446744073709551615.5"),
            Some(u128::from(u64::MAX) * u128::from(S) + 500_000_000_000)
        );
        assert_eq!((ps(".5"), ps("5.")), (Some(500_000_000_000), Some(5_000_000_000_000)));
        assert_eq!(
            (ps("."), ps("1.x"), ps("1e3"), ps("-0.5"), ps("")),
            (None, None, None, None, None)
        );
    }

    #[test]
    fn fields_lose_their_blanks_and_keep_their_columns() {
        let (fields, count) = split::<3>(b" ab; c ;d;e", b';');
        assert_eq!(count, 4);
        assert_eq!(fields.map(|f| (f.text, f.start)), [(&b"ab"[..], 1), (b"c", 5), (b"d", 8)]);
        let (fields, count) = split_blanks::<2>(b"  a\t bc  d ");
        assert_eq!(count, 3);
        assert_eq!(fields.map(|f| (f.text, f.start)), [(&b"a"[..], 2), (b"bc", 5)]);
        assert_eq!((split_blanks::<1>(b" ").1, split::<1>(b"", b',').1), (0, 1));
    }
}
