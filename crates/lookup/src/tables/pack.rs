//! Packing of the tables in the format of the hardware. The fields follow each other without gaps,
//! from the lowest bit of the first byte on.

/// Returns the number of bits that a number up to `largest` needs, at least one.
pub const fn bits_for(largest: u64) -> u32 {
    let bits = 64 - largest.leading_zeros();
    if bits == 0 { 1 } else { bits }
}

/// Writer of fields.
#[derive(Default, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    bits: usize,
}

impl Writer {
    /// Appends the lowest `bits` bits of `value`.
    ///
    /// # Panics
    /// Panics if `value` has more than `bits` bits.
    pub fn put(&mut self, value: u64, bits: u32) {
        assert!(
            bits == 64 || value >> bits == 0,
            "the value {value} does not fit into {bits} bits"
        );
        for i in 0..bits {
            if self.bits % 8 == 0 {
                self.bytes.push(0);
            }
            self.bytes[self.bits / 8] |= ((value >> i & 1) as u8) << (self.bits % 8);
            self.bits += 1;
        }
    }

    /// Returns the written bytes. Unused bits of the last byte are zeros.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reader of fields.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    bits: usize,
}

impl<'a> Reader<'a> {
    /// Returns a reader at the first bit.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, bits: 0 }
    }

    /// Returns the next `bits` bits, or `None` beyond the end.
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
