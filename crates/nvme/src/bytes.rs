//! Little-endian fields in pages of a fixed size.

/// A page of zeros, to which fields are written at their offsets in the specification.
pub struct Page(Vec<u8>);

impl Page {
    /// Makes a page of `bytes` zeros.
    pub fn new(bytes: usize) -> Page {
        Page(vec![0; bytes])
    }

    /// Writes a field of `N` bytes.
    pub fn put<const N: usize>(&mut self, offset: usize, field: [u8; N]) -> &mut Page {
        self.0[offset..offset + N].copy_from_slice(&field);
        self
    }

    /// Writes one byte.
    pub fn u8(&mut self, offset: usize, value: u8) -> &mut Page {
        self.put(offset, [value])
    }

    /// Writes a number of two bytes.
    pub fn u16(&mut self, offset: usize, value: u16) -> &mut Page {
        self.put(offset, value.to_le_bytes())
    }

    /// Writes a number of four bytes.
    pub fn u32(&mut self, offset: usize, value: u32) -> &mut Page {
        self.put(offset, value.to_le_bytes())
    }

    /// Writes a number of eight bytes.
    pub fn u64(&mut self, offset: usize, value: u64) -> &mut Page {
        self.put(offset, value.to_le_bytes())
    }

    /// Writes a number of sixteen bytes.
    pub fn u128(&mut self, offset: usize, value: u128) -> &mut Page {
        self.put(offset, value.to_le_bytes())
    }

    /// Writes text, padded with spaces to `bytes` (Base 1.4.2).
    pub fn ascii(&mut self, offset: usize, bytes: usize, text: &str) -> &mut Page {
        self.0[offset..offset + bytes].fill(b' ');
        self.text(offset, bytes, text)
    }

    /// Writes the first `bytes` of a text, and leaves the rest zero.
    pub fn text(&mut self, offset: usize, bytes: usize, text: &str) -> &mut Page {
        let text = &text.as_bytes()[..text.len().min(bytes)];
        self.0[offset..offset + text.len()].copy_from_slice(text);
        self
    }

    /// Returns the page.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}
