//! Wrong bits that copybacks carry.
//!
//! A copyback programs what the die has sensed, without correction. So each codeword of the copy
//! begins with the wrong bits that its source had when it was sensed at the default voltages. These
//! bits stay wrong in every read of the copy, and no shifted voltage helps. The copy's own wrong
//! bits come in addition. A bit that is wrong in both counts twice, although it would be right
//! again: with a rate below one in a hundred, this is less than one in a hundred of the carried
//! bits.

use super::draw::{self, CarriedPlaces};
use super::{BitErrors, Outcome};
use crate::Medium;
use flashatlas_types::{BlockId, FrameId};

impl Medium {
    /// Senses whole frames for a copyback. Returns the wrong bits of each of their codewords, in
    /// order, or no numbers without bit errors. Each sensed page counts as a read.
    pub(crate) fn wrong_bits_of(&mut self, frames: &[FrameId]) -> Vec<u16> {
        let mut wrong = Vec::new();
        if self.correction().is_some() {
            frames.iter().for_each(|&frame| self.add_wrong_bits(frame, &mut wrong));
        }
        wrong
    }

    fn add_wrong_bits(&mut self, frame: FrameId, wrong: &mut Vec<u16>) {
        let layout = self.shared_layout();
        let block = layout.block_of_frame(frame);
        let index = layout.index_in(block, frame);
        let sequence = self.cells.header(frame).sequence;
        let (lines, pages) =
            (layout.pages_at_once(self.mode(block)), layout.pages_in(self.mode(block)));
        for of_line in 0..lines {
            let Some((bits, rates, factor)) = self.rates_of(block, index, of_line) else { return };
            let rate = ((rates.0 + rates.1) * factor).min(0.5);
            let codeword = bits.correction.codeword;
            let count = pages / lines * (layout.geometry.page_bytes / codeword);
            let errors = self.errors.as_ref().expect("a medium with errors");
            let key = draw::key(errors.seed, frame.0, sequence);
            let carried = errors.carried.get(&frame);
            let numbers = of_line * count..(of_line + 1) * count;
            let own = draw::each_wrong(key, numbers.clone(), 8 * codeword, rate);
            for (number, own) in numbers.zip(own) {
                let before = carried.map_or(0, |carried| carried[number as usize].into());
                let all = (own + before).min(8 * codeword);
                wrong.push(u16::try_from(all).unwrap_or(u16::MAX));
            }
        }
        self.count_reads(block, pages);
    }

    /// Notes the wrong bits that the codewords of frames of a saved state begin with.
    ///
    /// # Errors
    /// Returns an error if a frame does not exist or has another number of codewords.
    pub(crate) fn lay_carried(&mut self, carried: &[(FrameId, Vec<u16>)]) -> Result<(), String> {
        let Some(correction) = self.correction() else { return Ok(()) };
        for (frame, wrong) in carried {
            if frame.0 >= self.layout.frames() {
                return Err(format!(
                    "the saved state has wrong bits of frame {frame}, which the \
                                    drive does not have"
                ));
            }
            let mode = self.mode(self.layout.block_of_frame(*frame));
            let bytes = self.layout.pages_in(mode) * self.layout.geometry.page_bytes;
            let codewords = bytes / correction.codeword;
            if wrong.len() != codewords as usize {
                return Err(format!(
                    "the saved state has wrong bits of {} codewords of frame {frame}, which has \
                     {codewords} (ecc.codeword)",
                    wrong.len()
                ));
            }
            self.carry(*frame, wrong);
        }
        Ok(())
    }

    /// Notes the wrong bits that the codewords of a frame begin with.
    pub(crate) fn carry(&mut self, frame: FrameId, wrong: &[u16]) {
        let block = self.layout.block_of_frame(frame);
        if let Some(errors) = &mut self.errors
            && let Some(&most) = wrong.iter().max()
            && most > 0
        {
            errors.carried.insert(frame, wrong.into());
            let carried = &mut errors.blocks[block].carried;
            *carried = most.max(*carried);
        }
    }

    /// Forgets the wrong bits that the frames of a block carry, because they are erased or
    /// corrected.
    pub(crate) fn forget_carried(&mut self, block: BlockId) {
        if let Some(errors) = &mut self.errors
            && !errors.carried.is_empty()
        {
            let frames = self.layout.frames_of(block);
            for frame in (frames.start.0..frames.end.0).map(FrameId) {
                errors.carried.remove(&frame);
            }
        }
    }
}

impl BitErrors {
    /// Returns the ending of a read of these codewords of the program with this key, which carry
    /// wrong bits.
    pub(super) fn read_carried(
        &self,
        key: u64,
        codewords: impl Iterator<Item = u32>,
        carried: &[u16],
        rates: (f64, f64),
        factor: f64,
    ) -> Outcome {
        let bits = 8 * self.correction.codeword;
        let places = CarriedPlaces::of(key, codewords, carried);
        self.read_with(rates, factor, |rate| places.wrong_bits(bits, rate))
    }
}
