//! Tests that compare Fig. 7 of Song et al. (2019), branch by branch, with the list in the engine.

use flashatlas_lookup::probe::Recency;

/// Returns the figure's registers `access_{t-3} … access_t` after an activation of `bank`.
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
        let mut banks = [0, 1, 2, 3];
        for i in 0..6 {
            let bank = (sequence >> (2 * i) & 3) as u8;
            registers = figure_7(registers, bank);
            recency.activated(bank);
            recency.sort(&mut banks);
            assert_eq!(banks, registers, "after {i} of {sequence:o}");
        }
    }
}

#[test]
fn any_number_of_banks() {
    let mut recency = Recency::new(16);
    let mut banks: Vec<u8> = (0..16).rev().collect();
    recency.sort(&mut banks);
    assert_eq!(banks, (0..16).collect::<Vec<u8>>());
    (0..16).rev().chain([3]).for_each(|bank| recency.activated(bank));
    recency.sort(&mut banks);
    assert_eq!(banks[..3], [15, 14, 13]);
    assert_eq!(banks[15], 3);
}

#[test]
fn some_of_the_banks() {
    let mut recency = Recency::new(9);
    [5, 8, 0, 6, 5].into_iter().for_each(|bank| recency.activated(bank));
    let mut banks = [4, 5, 6, 7];
    recency.sort(&mut banks);
    assert_eq!(banks, [4, 7, 6, 5]);
}
