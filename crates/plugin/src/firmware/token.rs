//! Tokens that represent host data in the buffers of a firmware.
//!
//! The simulator stores contents as stamps. A token is enough, because a firmware moves data
//! without using it.

use flashatlas_types::{Lpn, Ppn};

/// First bytes of a buffer with host data, which distinguish it from the firmware's own bytes.
const MAGIC: [u8; 16] = *b"\xF1ashAtlas: data\0";

/// Bytes of a token.
pub(super) const TOKEN_BYTES: usize = 32;

/// Data of a logical page, which comes from the host or was read from flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// The logical page.
    pub lpn: Lpn,
    /// The place from which the data was read, or `Ppn::NONE` if it comes from the host.
    pub from: Ppn,
    /// The number of the program at `from`, or of the host's write.
    pub number: u64,
}

impl Token {
    /// Returns the token as bytes.
    pub fn encode(self) -> [u8; TOKEN_BYTES] {
        let mut bytes = [0; TOKEN_BYTES];
        bytes[..16].copy_from_slice(&MAGIC);
        bytes[16..20].copy_from_slice(&self.lpn.0.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.from.0.to_le_bytes());
        bytes[24..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    /// Returns the token with which a buffer begins, or `None` if there is none.
    pub fn decode(bytes: &[u8]) -> Option<Token> {
        let bytes: &[u8; TOKEN_BYTES] = bytes.first_chunk()?;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        bytes.starts_with(&MAGIC).then(|| Token {
            lpn: Lpn(word(16)),
            from: Ppn(word(20)),
            number: u64::from_le_bytes(bytes[24..].try_into().expect("eight")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_told_from_other_bytes() {
        let token = Token { lpn: Lpn(7), from: Ppn(9), number: 1 << 40 };
        assert_eq!(Token::decode(&token.encode()), Some(token));
        assert_eq!(Token::decode(&[0; 64]), None);
        assert_eq!(Token::decode(&token.encode()[..31]), None);
    }
}
