//! Numbers coded with seven bits in each byte, the lowest bits first. The top bit of a byte is set
//! if another byte follows.

/// Bytes of the longest number.
pub const MAX_BYTES: usize = 10;

/// Appends `number`.
#[inline]
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a difference that may be negative: 0, −1, 1, −2 … become 0, 1, 2, 3 ….
#[inline]
pub fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Reader of the numbers of a column.
pub struct Numbers<'a> {
    rest: &'a [u8],
}

impl<'a> Numbers<'a> {
    pub fn new(column: &'a [u8]) -> Numbers<'a> {
        Numbers { rest: column }
    }

    /// Returns the next number, or `None` if the column ends before the number does or the number
    /// is longer than 64 bits.
    #[inline]
    pub fn next(&mut self) -> Option<u64> {
        let (&first, rest) = self.rest.split_first()?;
        if first < 0x80 {
            self.rest = rest;
            return Some(u64::from(first));
        }
        self.next_long()
    }

    #[inline]
    fn next_long(&mut self) -> Option<u64> {
        let mut number = 0;
        for (i, &byte) in self.rest.iter().take(MAX_BYTES).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if i == MAX_BYTES - 1 && byte > 1 {
                return None;
            }
            number |= bits << (7 * i);
            if byte < 0x80 {
                self.rest = &self.rest[i + 1..];
                return Some(number);
            }
        }
        None
    }

    /// Returns the next difference, or `None` as [`Numbers::next`] does.
    #[inline]
    pub fn next_signed(&mut self) -> Option<i64> {
        self.next().map(|n| (n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// Returns `true` if the whole column was taken.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_a_byte_for_seven_bits() {
        let mut out = Vec::new();
        put(&mut out, 0x7f);
        put(&mut out, 0x80);
        put_signed(&mut out, -1);
        put_signed(&mut out, 64);
        assert_eq!(out, [0x7f, 0x80, 0x01, 0x01, 0x80, 0x01]);
    }

    #[test]
    fn every_number_comes_back_and_none_is_made_up() {
        let numbers = [0, 1, 127, 128, u64::MAX >> 1, u64::MAX];
        let differences = [0, -1, 1, i64::MIN, i64::MAX];
        let mut out = Vec::new();
        numbers.iter().for_each(|&n| put(&mut out, n));
        differences.iter().for_each(|&n| put_signed(&mut out, n));
        let mut taken = Numbers::new(&out);
        numbers.iter().for_each(|&n| assert_eq!(taken.next(), Some(n)));
        differences.iter().for_each(|&n| assert_eq!(taken.next_signed(), Some(n)));
        assert!(taken.is_empty() && taken.next().is_none());
        assert_eq!(Numbers::new(&[0x80]).next(), None, "cut short");
        assert_eq!(
            Numbers::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).next(),
            None,
            "65 bits"
        );
        assert_eq!(Numbers::new(&[0x80; 11]).next(), None, "endless");
    }
}
