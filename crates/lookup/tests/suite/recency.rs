//! Fig. 7 of Song et al. (2019), branch by branch, against the list that the engine keeps.

use flashatlas_lookup::probe::Recency;

/// The figure's registers, `access_{t-3} … access_t`, and its four branches.
fn figure_7(access: [u8; 4], bank: u8) -> [u8; 4] {
    let [t3, t2, t1, t] = access;
    if bank == t {
        access
    } else if bank == t1 {
        [t3, t2, t, bank]
    } else if bank == t2 {
        [t3, t1, t, bank]
    } else {
        [t2, t1, t, bank]
    }
}

#[test]
fn all_sequences_of_six_activations() {
    for sequence in 0..4u32.pow(6) {
        let mut registers = [0, 1, 2, 3];
        let mut recency = Recency::new(4);
        for i in 0..6 {
            let bank = (sequence >> (2 * i) & 3) as u8;
            registers = figure_7(registers, bank);
            recency.activated(bank);
            assert_eq!(
                recency.least_recent_first().collect::<Vec<_>>(),
                registers,
                "after {i} of {sequence:o}"
            );
        }
    }
}

#[test]
fn any_number_of_banks() {
    let mut recency = Recency::new(16);
    assert_eq!(recency.least_recent_first().collect::<Vec<_>>(), (0..16).collect::<Vec<u8>>());
    (0..16).rev().chain([3]).for_each(|bank| recency.activated(bank));
    assert_eq!(recency.least_recent_first().take(3).collect::<Vec<_>>(), [15, 14, 13]);
    assert_eq!(recency.least_recent_first().last(), Some(3));
}
