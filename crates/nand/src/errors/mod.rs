//! Bit errors of the flash, their correction, and failures at random.
//!
//! The raw bit error rate of a frame depends on the cycles of its block, on the time since the
//! block's first program, and on the reads of the block since its last erase. It also depends on
//! the place of the frame in the block ([`models`]). The seed gives each block a factor of its own.
//! Each codeword of a read has a number of wrong bits ([`draw`]), and the worst codeword decides
//! the result of the read. The read is corrected, or the page is read again, first with shifted
//! voltages and then with soft decisions. If all these reads fail, the page is lost. Its frame
//! stays unreadable ([`Medium::decay`]), because its errors only grow.
//!
//! Time is counted in whole seconds. The clock of a medium goes on while the drive is switched off
//! ([`Medium::rest`]). The time of a block counts from its first program after an erase, so later
//! pages of the block count as older than they are.
//!
//! [`Medium::decay`]: crate::Medium::decay
//! [`Medium::rest`]: crate::Medium::rest

mod carried;
pub mod codes;
mod counters;
pub mod draw;
mod medium;
pub mod models;
pub mod params;
mod parity;
#[cfg(test)]
mod parity_tests;
pub mod power;
mod read;
#[cfg(test)]
mod tests;

pub use counters::ErrorCounters;
pub use medium::{Aged, Errors};

use codes::CODES;
use draw::{Places, WrongBits};
use flashatlas_types::{BlockMode, ConfigError, Dur, Geometry, Layout, ParamDef, Params};
use models::{Formula, MODELS};

/// Largest number of retries of a read.
pub const STEPS_MAX: usize = 15;

/// Seconds of a day.
const DAY: u32 = 86_400;

/// Correction of the wrong bits of a read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Correction {
    /// Data bytes of a codeword.
    pub codeword: u32,
    /// Wrong bits of a codeword that are corrected.
    pub correctable: u32,
    /// Time to decode a read.
    pub decode: Dur,
    /// Wrong bits that soft decoding corrects, its reads and its time, if there is soft decoding.
    pub soft: Option<(u32, u32, Dur)>,
    /// Number of retries.
    pub steps: u32,
    /// The factor of a retry for the part of the rate that time and reads cause.
    pub gain: f64,
    /// `true` if a retry is sensed while the read before it is transferred and decoded.
    pub overlap: bool,
}

/// Rules of bit errors.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BitErrors {
    /// The formula of the rate.
    pub formula: Formula,
    /// Seconds of a unit of time in the formula.
    pub time_unit: u32,
    /// Spread of the rates of blocks, from 0 to below 1.
    pub block_spread: f64,
    /// Rate of the last kind of page of a word line, as a multiple of the first.
    pub page_spread: f64,
    /// Rate of the last word line of a block, as a multiple of the first.
    pub layer_spread: f64,
    /// Rate of a page in SLC mode, as a share of the rate of a lower page.
    pub slc_factor: f64,
    /// Cycles that every block had before the drive's own.
    pub cycles: u32,
    /// The correction.
    pub correction: Correction,
}

/// Failures in a million operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FailureRates {
    /// Programs that fail.
    pub program: u32,
    /// Erases that fail.
    pub erase: u32,
    /// Reads that make their page unreadable.
    pub unreadable: u32,
}

/// Errors of one kind of flash.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ErrorRules {
    /// Bit errors, if the flash has any.
    pub bits: Option<BitErrors>,
    /// Failures at random.
    pub rates: FailureRates,
    /// Seconds for which a preconditioned drive rests.
    pub rest_s: u32,
    /// Time to rebuild a page from the parity of its frame, once all pages are read.
    pub rebuild: Dur,
}

/// Returns an error if a configuration sets a key of errors that no error model uses.
fn refuse_unused(params: &Params) -> Result<(), ConfigError> {
    let rates = [params::PROGRAM_FAILURES, params::ERASE_FAILURES, params::UNREADABLE];
    let parity = [params::PARITY.key(), params::PARITY_TIME.key()];
    let always = |key: &str| {
        key == params::MODEL.key() || parity.contains(&key) || rates.iter().any(|r| r.key() == key)
    };
    let unused: Vec<&ParamDef> = params::PARAMS.iter().filter(|def| !always(def.key)).collect();
    for def in unused {
        let default = def.default.map(|text| def.parse(text)).transpose()?;
        if params.value(def.key) != default.as_ref() {
            let why = "has no use with errors.model = none: name a model, or leave this out";
            return Err(ConfigError::new(def.key, why));
        }
    }
    Ok(())
}

impl ErrorRules {
    /// Returns the errors that `params` describe, or `None` if nothing ever fails.
    pub fn from_params(params: &Params) -> Option<ErrorRules> {
        let rates = FailureRates {
            program: params.get(params::PROGRAM_FAILURES),
            erase: params.get(params::ERASE_FAILURES),
            unreadable: params.get(params::UNREADABLE),
        };
        let rest_s = params.get(params::REST_DAYS) * DAY;
        let model = MODELS.iter().find(|model| model.name == params.get(params::MODEL));
        let bits = model.map(|model| BitErrors::from_params(params, model.formula));
        (bits.is_some() || rates != FailureRates::default()).then_some(ErrorRules {
            bits,
            rates,
            rest_s,
            rebuild: params.get(params::PARITY_TIME),
        })
    }

    /// Returns `true` if a page may become unreadable.
    pub fn lose_pages(&self) -> bool {
        self.bits.is_some() || self.rates.unreadable > 0
    }

    /// Checks the parameters of errors against each other and against the flash.
    ///
    /// # Errors
    /// Returns an error if a codeword does not divide a page, if a retry is to overlap without
    /// cache reads, or if a parameter is set that no error model uses. Returns an error if frames
    /// have parity, but no page is ever lost.
    pub fn check(
        params: &Params,
        geometry: &Geometry,
        cache_read: bool,
    ) -> Result<(), ConfigError> {
        parity::check(params)?;
        let Some(rules) = ErrorRules::from_params(params) else { return refuse_unused(params) };
        let Some(bits) = rules.bits else { return refuse_unused(params) };
        let Correction { codeword, correctable, soft, overlap, .. } = bits.correction;
        if geometry.page_bytes % codeword != 0 {
            return Err(ConfigError::new(
                params::CODEWORD.key(),
                format!(
                    "codewords of {codeword} bytes do not divide pages of {} bytes",
                    geometry.page_bytes
                ),
            ));
        }
        if soft.is_some_and(|(most, ..)| most <= correctable) {
            return Err(ConfigError::new(
                params::SOFT_CORRECTABLE.key(),
                format!("must exceed the {correctable} bits that hard decoding corrects"),
            ));
        }
        if overlap && !cache_read {
            return Err(ConfigError::new(
                params::RETRY_OVERLAP.key(),
                "retries overlap only with cache reads: set timing.cache_read = true",
            ));
        }
        Ok(())
    }
}

impl BitErrors {
    fn from_params(params: &Params, model: Formula) -> BitErrors {
        let or = |given: f64, model: f64| if given < 0.0 { model } else { given };
        let number = |param, model| or(params.get(param), model);
        let code = CODES.iter().find(|code| code.name == params.get(params::CODE));
        let code = code.expect("the name was checked");
        let or_code = |given: u32, code: u32| if given == 0 { code } else { given };
        let time = |given: Dur, code: Dur| if given == Dur::ZERO { code } else { given };
        let most = or_code(params.get(params::SOFT_CORRECTABLE), code.soft_correctable);
        let reads = or_code(params.get(params::SOFT_READS), code.soft_reads);
        let soft_decode = time(params.get(params::SOFT_DECODE), code.soft_decode);
        BitErrors {
            formula: Formula {
                base: number(params::BASE, model.base),
                wear: [0, 1].map(|i| number(params::WEAR[i], model.wear[i])),
                retention: [0, 1, 2].map(|i| number(params::RETENTION[i], model.retention[i])),
                disturb: [0, 1, 2].map(|i| number(params::DISTURB[i], model.disturb[i])),
            },
            time_unit: if params.get(params::TIME_UNIT) == "hour" { 3600 } else { DAY },
            block_spread: params.get(params::BLOCK_SPREAD),
            page_spread: params.get(params::PAGE_SPREAD),
            layer_spread: params.get(params::LAYER_SPREAD),
            slc_factor: params.get(params::SLC_FACTOR),
            cycles: params.get(params::CYCLES),
            correction: Correction {
                codeword: or_code(params.get(params::CODEWORD), code.codeword),
                correctable: or_code(params.get(params::CORRECTABLE), code.correctable),
                decode: time(params.get(params::DECODE), code.decode),
                soft: (most > 0).then_some((most, reads, soft_decode)),
                steps: params.get(params::RETRY_STEPS),
                gain: params.get(params::RETRY_GAIN),
                overlap: params.get(params::RETRY_OVERLAP),
            },
        }
    }

    /// Returns the factor of a page for its mode, its kind and its word line. `of_line` is its
    /// number on the word line, if its frame is a whole word line, and otherwise 0.
    fn place_factor(&self, layout: &Layout, mode: BlockMode, index: u32, of_line: u32) -> f64 {
        let part = |spread: f64, at: u32, count: u32| {
            if count < 2 {
                1.0
            } else {
                1.0 + (spread - 1.0) * f64::from(at) / f64::from(count - 1)
            }
        };
        let line = part(self.layer_spread, layout.word_line(mode, index), layout.word_lines());
        if mode == BlockMode::Slc {
            return self.slc_factor * line;
        }
        // a frame that is a whole word line counts as its first page
        let kind = u32::from(layout.level_in(mode, index)) + of_line;
        part(self.page_spread, kind, layout.geometry.cell.levels().into()) * line
    }
}

/// The way in which a read ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The read was corrected after this number of retries.
    Corrected(u32),
    /// Soft decoding corrected the read after all retries.
    Soft,
    /// The page cannot be read any more.
    Uncorrectable,
}

/// A read of codewords, as the correction found it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The ending.
    pub ending: Ending,
    /// Wrong bits that were corrected in the last read.
    pub corrected: u64,
}

impl BitErrors {
    /// Returns the ending of a read of these codewords. `rates` has the part of the rate by cycles,
    /// and the part by time and reads.
    fn read(&self, places: &Places, rates: (f64, f64), factor: f64) -> Outcome {
        let codeword = self.correction.codeword;
        self.read_with(rates, factor, |rate| places.wrong_bits(8 * codeword, rate))
    }

    /// Returns the ending of a read whose wrong bits at a rate are `wrong_bits`.
    #[inline]
    fn read_with(
        &self,
        (lasting, mut passing): (f64, f64),
        factor: f64,
        wrong_bits: impl Fn(f64) -> WrongBits,
    ) -> Outcome {
        let Correction { correctable, soft, steps, gain, .. } = self.correction;
        let mut found = WrongBits::default();
        for retries in 0..=steps {
            let rate = ((lasting + passing) * factor).min(0.5);
            found = wrong_bits(rate);
            if found.worst <= correctable {
                return Outcome { ending: Ending::Corrected(retries), corrected: found.sum };
            }
            passing *= gain;
        }
        match soft {
            Some((most, ..)) if found.worst <= most => {
                Outcome { ending: Ending::Soft, corrected: found.sum }
            }
            _ => Outcome { ending: Ending::Uncorrectable, corrected: 0 },
        }
    }
}

impl Correction {
    /// Returns the number of wrong bits of a codeword at a rate of 1, as a share of the bits that
    /// hard decoding corrects.
    pub(crate) fn share_of_rate(&self) -> f64 {
        f64::from(8 * self.codeword) / f64::from(self.correctable)
    }

    /// Returns the number of reads after the first read.
    pub fn further_reads(&self, ending: Ending) -> u32 {
        let soft = self.soft.map_or(0, |(_, reads, _)| reads);
        match ending {
            Ending::Corrected(retries) => retries,
            Ending::Soft | Ending::Uncorrectable => self.steps + soft,
        }
    }
}
