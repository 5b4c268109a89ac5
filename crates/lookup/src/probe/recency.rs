//! Order of the banks' last activations: Song et al. (2019), Fig. 7, for any number of banks.
//!
//! The figure's registers `access_t … access_{t-3}` are a list, most recent first, and its four
//! branches all do the same: the activated bank moves to the front, and the banks before it move
//! back by one. So the list is sorted by the time of the last activation, and a number for each
//! bank has the same information. A set that opens a row in each of its banks leaves the banks in
//! the order of its visits, so the next set finds them sorted.

/// Time at which each bank was activated last, counted in activations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recency {
    last: Vec<u64>,
    activations: u64,
}

impl Recency {
    /// Returns the recency of `banks` banks; at first, lower ones count as activated longer ago.
    pub fn new(banks: u32) -> Recency {
        Recency { last: (0..banks.into()).collect(), activations: banks.into() }
    }

    /// Notes that a bank is activated.
    #[inline]
    pub fn activated(&mut self, bank: u8) {
        self.last[usize::from(bank)] = self.activations;
        self.activations += 1;
    }

    /// Sorts some banks, so that the bank activated longest ago goes first. Banks that are sorted
    /// already take one comparison each.
    #[inline]
    pub fn sort(&self, banks: &mut [u8]) {
        let last = |bank: u8| self.last[usize::from(bank)];
        for end in 1..banks.len() {
            let mut at = end;
            while at > 0 && last(banks[at - 1]) > last(banks[at]) {
                banks.swap(at - 1, at);
                at -= 1;
            }
        }
    }
}
