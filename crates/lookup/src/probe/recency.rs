//! Which banks were activated lately: Song et al. (2019), Fig. 7, for any number of banks.
//!
//! The figure's registers `access_t … access_{t-3}` are a list, most recent first, and its four
//! branches all do the same: the activated bank moves to the front, those before it move back by
//! one.

/// Banks by the time of their last activation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recency {
    /// Most recent first.
    banks: [u8; 64],
    count: u8,
}

impl Recency {
    /// So many banks; at first bank 0 counts as the one activated longest ago.
    pub fn new(banks: u32) -> Recency {
        let mut list = [0; 64];
        list.iter_mut().zip((0..banks as u8).rev()).for_each(|(place, bank)| *place = bank);
        Recency { banks: list, count: banks as u8 }
    }

    /// A bank is activated.
    #[inline]
    pub fn activated(&mut self, bank: u8) {
        let mut moved = bank;
        for place in &mut self.banks[..usize::from(self.count)] {
            std::mem::swap(place, &mut moved);
            if moved == bank {
                return;
            }
        }
        unreachable!("bank {bank} is not in the list");
    }

    /// The banks, the one activated longest ago first: the order of visits.
    #[inline]
    pub fn least_recent_first(&self) -> impl Iterator<Item = u8> {
        self.banks[..usize::from(self.count)].iter().rev().copied()
    }
}
