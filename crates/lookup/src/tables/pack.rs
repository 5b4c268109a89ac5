//! Fields side by side, from the lowest bit of the first byte on, nothing in between: the tables as
//! the hardware holds them.

/// Bits that a number up to `largest` needs; at least one.
pub const fn bits_for(largest: u64) -> u32 {
    let bits = 64 - largest.leading_zeros();
    if bits == 0 { 1 } else { bits }
}

/// Writes fields.
#[derive(Default, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    bits: usize,
}

impl Writer {
    /// Append the lowest `bits` of `value`.
    ///
    /// # Panics
    /// When the value is wider than that.
    pub fn put(&mut self, value: u64, bits: u32) {
        assert!(bits == 64 || value >> bits == 0, "{value} does not fit {bits} bits");
        for i in 0..bits {
            if self.bits % 8 == 0 {
                self.bytes.push(0);
            }
            self.bytes[self.bits / 8] |= ((value >> i & 1) as u8) << (self.bits % 8);
            self.bits += 1;
        }
    }

    /// What was written; the last byte is filled with zeros.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads them again.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    bits: usize,
}

impl<'a> Reader<'a> {
    /// From the first bit on.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, bits: 0 }
    }

    /// The next `bits`; `None` behind the end.
    pub fn take(&mut self, bits: u32) -> Option<u64> {
        let mut value = 0;
        for i in 0..bits {
            let byte = self.bytes.get(self.bits / 8)?;
            value |= u64::from(byte >> (self.bits % 8) & 1) << i;
            self.bits += 1;
        }
        Some(value)
    }
}
