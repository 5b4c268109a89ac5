//! Byte-addressable non-volatile memory beside the flash: its content, the effect of a power cut,
//! and its wear.
//!
//! A store is visible immediately and durable after the next fence. If the power fails, each
//! 64-byte line with stores since the last fence holds the new bytes or the old bytes, or it is
//! torn. A torn line holds the new bytes up to some word of 8 bytes, and the old bytes after it.
//!
//! The outcome for each line is a hash of its address, of the number of stores so far, and of a
//! number that the caller may pass. So the same cut has the same outcome, and another number gives
//! another outcome. Words are never torn, because the parts write 8 bytes together.

/// Bytes of a line. A line is the unit of write-back, loss and wear.
pub const LINE_BYTES: u64 = 64;

/// Bytes of a word, which is never torn.
const WORD_BYTES: u64 = 8;

/// Loads, stores and fences of the memory since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NvmCounters {
    /// Bytes loaded.
    pub loaded: u64,
    /// Bytes stored.
    pub stored: u64,
    /// Fences.
    pub fences: u64,
}

/// The old bytes at the address of a store since the last fence.
#[derive(Clone, Debug)]
struct Unfenced {
    address: u64,
    old: Vec<u8>,
}

/// Byte-addressable non-volatile memory.
#[derive(Clone, Debug)]
pub struct Nvm {
    cells: Vec<u8>,
    /// Number of stores to each line.
    wear: Vec<u32>,
    unfenced: Vec<Unfenced>,
    stores: u64,
    /// Counts since the last reset.
    pub counters: NvmCounters,
}

impl Nvm {
    /// Builds a memory of `bytes` bytes of zeros.
    pub fn new(bytes: u64) -> Nvm {
        Nvm::holding(vec![0; bytes as usize], vec![0; bytes.div_ceil(LINE_BYTES) as usize])
    }

    /// Builds a memory with these contents and these numbers of stores to each line.
    pub(crate) fn holding(cells: Vec<u8>, wear: Vec<u32>) -> Nvm {
        Nvm { cells, wear, unfenced: Vec::new(), stores: 0, counters: NvmCounters::default() }
    }

    /// Returns the number of bytes of the memory.
    pub fn len(&self) -> u64 {
        self.cells.len() as u64
    }

    /// Returns whether the drive has no such memory.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns `len` bytes at `address`, as a load returns them.
    pub fn bytes(&self, address: u64, len: u64) -> &[u8] {
        &self.cells[address as usize..(address + len) as usize]
    }

    /// Returns the largest number of stores to one line.
    pub fn wear_max(&self) -> u32 {
        self.wear.iter().copied().max().unwrap_or(0)
    }

    pub(crate) fn into_parts(self) -> (Vec<u8>, Vec<u32>) {
        (self.cells, self.wear)
    }

    pub(crate) fn store(&mut self, address: u64, bytes: &[u8]) {
        let range = address as usize..address as usize + bytes.len();
        let old = self.cells[range.clone()].to_vec();
        self.unfenced.push(Unfenced { address, old });
        self.cells[range].copy_from_slice(bytes);
        let lines = address / LINE_BYTES..(address + bytes.len() as u64).div_ceil(LINE_BYTES);
        self.wear[lines.start as usize..lines.end as usize].iter_mut().for_each(|w| *w += 1);
        self.stores += 1;
    }

    pub(crate) fn fence(&mut self) {
        self.unfenced.clear();
    }

    /// Loses power. Lines with stores since the last fence are then new, old or torn, as the top of
    /// this file explains.
    pub(crate) fn lose_power(&mut self, draw: u8) {
        for Unfenced { address, old } in std::mem::take(&mut self.unfenced).into_iter().rev() {
            let end = address + old.len() as u64;
            let mut at = address;
            while at < end {
                let line_end = ((at / LINE_BYTES + 1) * LINE_BYTES).min(end);
                // number of words of this part of the line that hold new bytes: all, none or some
                let words = (line_end - at).div_ceil(WORD_BYTES);
                let draw = mix((at / LINE_BYTES) ^ (self.stores << 32) ^ (u64::from(draw) << 56));
                let new = match draw % 3 {
                    0 => words,
                    1 => 0,
                    _ => (draw >> 8) % (words + 1),
                };
                let from = (at + new * WORD_BYTES).min(line_end);
                self.cells[from as usize..line_end as usize].copy_from_slice(
                    &old[(from - address) as usize..(line_end - address) as usize],
                );
                at = line_end;
            }
        }
    }

    /// Corrupts a byte.
    pub fn corrupt(&mut self, address: u64) {
        self.cells[address as usize] ^= 0x55;
    }
}

/// Returns `x` mixed by the finaliser of MurmurHash3.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_fenced_stays_and_the_rest_is_new_old_or_torn_by_words() {
        let (mut kept, mut lost, mut torn) = (0, 0, 0);
        for line in 0..64 {
            let mut nvm = Nvm::new(1 << 14);
            nvm.store(0, &[1; 1 << 14]);
            nvm.fence();
            nvm.store(line * LINE_BYTES, &[2; 128]);
            nvm.lose_power(0);
            assert!(nvm.bytes(0, line * LINE_BYTES).iter().all(|&b| b == 1), "fenced bytes stay");
            let bytes = nvm.bytes(line * LINE_BYTES, LINE_BYTES);
            let new = bytes.iter().filter(|&&b| b == 2).count();
            assert!(
                bytes[..new].iter().all(|&b| b == 2) && bytes[new..].iter().all(|&b| b == 1),
                "{bytes:?}"
            );
            assert_eq!(new % WORD_BYTES as usize, 0, "words are whole");
            match new {
                64 => kept += 1,
                0 => lost += 1,
                _ => torn += 1,
            }
        }
        assert!(kept > 5 && lost > 5 && torn > 5, "{kept} kept, {lost} lost, {torn} torn");
    }

    #[test]
    fn of_two_unfenced_stores_to_a_line_a_cut_never_leaves_bytes_of_neither() {
        for at in 0..200 {
            let mut nvm = Nvm::new(1 << 14);
            nvm.store(at * 8, &[1; 64]);
            nvm.store(at * 8, &[2; 64]);
            nvm.lose_power(0);
            assert!(
                nvm.bytes(at * 8, 64).chunks(8).all(|w| w.iter().all(|&b| b == w[0] && b <= 2))
            );
        }
    }

    #[test]
    fn wear_counts_stores_by_line() {
        let mut nvm = Nvm::new(256);
        nvm.store(60, &[1; 8]);
        nvm.store(64, &[1; 8]);
        assert_eq!(nvm.wear, [1, 2, 0, 0]);
        assert_eq!(nvm.wear_max(), 2);
    }
}
