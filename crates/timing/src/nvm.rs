//! Technologies of byte-addressable non-volatile memory. Each number has its source.

use flashatlas_types::Dur;

/// One kind of memory.
pub struct Technology {
    /// Name in `memory.nvm`.
    pub name: &'static str,
    /// One line of description, with the sources of the numbers.
    pub summary: &'static str,
    /// Time of one load.
    pub read: Dur,
    /// Time of one store, or of the write-back at a fence.
    pub write: Dur,
    /// Bytes a second.
    pub rate: u64,
}

/// All technologies.
pub const TECHNOLOGIES: &[Technology] = &[
    // 32 KiB / (13 us - 150 ns): 1 % of the 1.3 ms that the paper's board takes to program 32 KB
    Technology {
        name: "pcm",
        summary: "phase-change memory, 100 times faster than NAND (Lee, Kang and Eom 2016): 32 KB \
                  in 13 us, beside 1.3 ms of the Jasmine board; latencies of 50 ns a load and 150 \
                  ns a store are assumed",
        read: Dur::from_ns(50),
        write: Dur::from_ns(150),
        rate: 2_550_000_000,
    },
    Technology {
        name: "stt-mram",
        summary: "STT-MRAM behind a DDR3-class interface: 3 GB/s, 35 ns a load or store (assumed, \
                  of published parts)",
        read: Dur::from_ns(35),
        write: Dur::from_ns(35),
        rate: 3_000_000_000,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_takes_a_hundredth_of_its_program_in_pcm() {
        let pcm = &TECHNOLOGIES[0];
        let page = pcm.write + Dur::transfer(32 << 10, pcm.rate);
        let share = page.0 as f64 / Dur::from_us(1300).0 as f64;
        assert!((share - 0.01).abs() < 1e-5, "{share}");
    }
}
