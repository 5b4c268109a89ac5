//! The order in which frames visit the parts of a board.

/// The order in which consecutive frames visit channels, ways, dies and planes.
///
/// The first letter changes fastest. For example, `CWDP` visits all channels, then all channels of
/// the next way. There are 24 orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllocationOrder(pub(crate) [u8; 4]);

impl AllocationOrder {
    /// Parses the letters `C`, `W`, `D` and `P` in any order; returns `None` for any other text.
    pub fn parse(text: &str) -> Option<AllocationOrder> {
        let letters: [u8; 4] = text.to_ascii_uppercase().into_bytes().try_into().ok()?;
        b"CWDP".iter().all(|l| letters.contains(l)).then_some(AllocationOrder(letters))
    }
}
