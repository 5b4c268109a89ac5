//! Which banks were activated lately: Song et al. (2019), Fig. 7, for any number of banks.
//!
//! The figure's registers `access_t … access_{t-3}` are a list, most recent first, and its four
//! branches all do the same: the activated bank moves to the front, those before it move back by
//! one. So the list is sorted by the time of the last activation, and a number for each bank says
//! the same. A set that opens a row in each of its banks leaves them in the order in which it has
//! visited them: the next one finds them sorted.

/// When each bank was activated last, counted in activations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recency {
    last: Vec<u64>,
    activations: u64,
}

impl Recency {
    /// So many banks; at first the lower ones count as activated longer ago.
    pub fn new(banks: u32) -> Recency {
        Recency { last: (0..banks.into()).collect(), activations: banks.into() }
    }

    /// A bank is activated.
    #[inline]
    pub fn activated(&mut self, bank: u8) {
        self.last[usize::from(bank)] = self.activations;
        self.activations += 1;
    }

    /// Sort some banks: the one activated longest ago goes first. One comparison a bank where they
    /// are sorted already.
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
