//! Error-correcting codes, each number with its source.

use flashatlas_types::Dur;

/// A code.
pub struct Code {
    /// Name in `ecc.code`.
    pub name: &'static str,
    /// One line of description, with the sources of the numbers.
    pub summary: &'static str,
    /// Data bytes of a codeword.
    pub codeword: u32,
    /// Wrong bits of a codeword that are corrected.
    pub correctable: u32,
    /// Time to decode a read.
    pub decode: Dur,
    /// Wrong bits of a codeword that soft decoding corrects; 0 without soft decoding.
    pub soft_correctable: u32,
    /// Reads that soft decoding takes.
    pub soft_reads: u32,
    /// Time of soft decoding.
    pub soft_decode: Dur,
}

/// All codes.
pub const CODES: &[Code] = &[
    Code {
        name: "bch",
        summary: "BCH, 40 bits in 1 KiB as data sheets of planar MLC ask for; decoding of 5 us is \
                  assumed",
        codeword: 1024,
        correctable: 40,
        decode: Dur::from_us(5),
        soft_correctable: 0,
        soft_reads: 0,
        soft_decode: Dur::ZERO,
    },
    Code {
        name: "ldpc",
        summary: "LDPC with hard decisions: 72 bits in 1 KiB, decoding of 20 us (both assumed)",
        codeword: 1024,
        correctable: 72,
        decode: Dur::from_us(20),
        soft_correctable: 0,
        soft_reads: 0,
        soft_decode: Dur::ZERO,
    },
    Code {
        name: "ldpc-soft",
        summary: "LDPC as `ldpc`, then soft decisions of 4 more reads: 120 bits in 1 KiB, 80 us \
                  (all assumed)",
        codeword: 1024,
        correctable: 72,
        decode: Dur::from_us(20),
        soft_correctable: 120,
        soft_reads: 4,
        soft_decode: Dur::from_us(80),
    },
];
