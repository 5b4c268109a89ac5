//! Error models: numbers of the formula of the raw bit error rate, each with its source.

use super::power::power;

/// Numbers of the formula `e + a c^k + b c^m t^n + g c^p r^q`.
///
/// `c` is the number of cycles of the block, `t` the time since its first program, and `r` the
/// mean number of reads of its pages since then.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Formula {
    /// The rate of new flash, `e`.
    pub base: f64,
    /// Factor and exponent of cycles, `a` and `k`.
    pub wear: [f64; 2],
    /// Factor, and exponents of cycles and time, `b`, `m` and `n`.
    pub retention: [f64; 3],
    /// Factor, and exponents of cycles and reads, `g`, `p` and `q`.
    pub disturb: [f64; 3],
}

/// The parts of a formula that depend on the cycles of a block.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct AtCycles {
    /// `e + a c^k`.
    pub lasting: f64,
    /// `b c^m`.
    pub retention: f64,
    /// `g c^p`.
    pub disturb: f64,
}

impl Formula {
    /// Returns the parts that depend on `cycles`.
    pub fn at_cycles(&self, cycles: u32) -> AtCycles {
        let c = f64::from(cycles);
        AtCycles {
            lasting: self.base + self.wear[0] * power(c, self.wear[1]),
            retention: self.retention[0] * power(c, self.retention[1]),
            disturb: self.disturb[0] * power(c, self.disturb[1]),
        }
    }

    /// Returns the part of the rate that time and reads cause.
    pub fn passing(&self, at: &AtCycles, time: f64, reads: f64) -> f64 {
        at.retention * power(time, self.retention[2]) + at.disturb * power(reads, self.disturb[2])
    }
}

/// A published error model.
pub struct ErrorModel {
    /// Name in `errors.model`.
    pub name: &'static str,
    /// One line of description, with the source of the numbers.
    pub summary: &'static str,
    /// The numbers.
    pub formula: Formula,
}

/// All error models.
pub const MODELS: &[ErrorModel] = &[ErrorModel {
    name: "tlc-72l",
    summary: "TLC of 72 layers: form of Kim, Choi and Min (FAST 2019), numbers as MQSim-JW has \
              them (commit 0bfbedf); the unit of time is an assumption (errors.time_unit)",
    formula: Formula {
        base: 1.48e-3,
        wear: [3.90e-10, 2.05],
        retention: [6.28e-5, 0.14, 0.54],
        disturb: [3.73e-9, 0.33, 1.71],
    },
}];

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates that Python's `**` gives: `e + a*c**k + b*c**m*t**n + g*c**p*r**q`.
    #[test]
    fn rates_are_those_of_the_formula() {
        let formula = MODELS[0].formula;
        for (cycles, time, reads, expected) in [
            (1, 0.0, 0.0, EXPECTED[0]),
            (1000, 0.0, 0.0, EXPECTED[1]),
            (1000, 365.0, 0.0, EXPECTED[2]),
            (3000, 90.0, 1000.0, EXPECTED[3]),
            (300, 1.0, 500.0, EXPECTED[4]),
        ] {
            let at = formula.at_cycles(cycles);
            let rate = at.lasting + formula.passing(&at, time, reads);
            assert!((rate / expected - 1.0).abs() < 1e-10, "{cycles} {time} {reads}: {rate}");
        }
    }

    const EXPECTED: [f64; 5] = [
        0.00148000039,
        0.002030889642402873,
        0.0060266348803405265,
        0.0159717327891388,
        0.0026764192596293633,
    ];
}
