//! Order of the banks' last activations, as in Fig. 7 of Song et al. (2019), for any number of
//! banks.
//!
//! The figure's registers `access_t … access_{t-3}` are a list with the most recent bank first. All
//! four branches of the figure do the same: the activated bank moves to the front, and the banks
//! before it move back by one. So the list is sorted by the time of the last activation, and one
//! number for each bank holds the same information. If a set opens a row in each of its banks, the
//! banks are afterwards sorted in the order of the visits.

/// Time at which each bank was activated last, counted in activations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recency {
    last: Vec<u64>,
    activations: u64,
}

impl Recency {
    /// Returns the recency of `banks` banks. At first, a bank with a lower number counts as
    /// activated longer ago.
    pub fn new(banks: u32) -> Recency {
        Recency { last: (0..banks.into()).collect(), activations: banks.into() }
    }

    /// Notes that a bank is activated.
    #[inline]
    pub fn activated(&mut self, bank: u8) {
        self.last[usize::from(bank)] = self.activations;
        self.activations += 1;
    }

    /// Sorts some banks so that the bank that was activated longest ago comes first. If the banks
    /// are already sorted, each bank takes one comparison.
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
