//! Checkpoints of an idle drive, in the file format of `flashatlas run`.

use crate::abi::FaCode;
use crate::command::{Refusal, refuse};
use crate::drive::{Drive, Power, Tally, make_durable};
use crate::parts;
use flashatlas_nand::Image;
use flashatlas_sim::checkpoint;
use flashatlas_types::{Lpn, Stamp};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};

/// Number of bits by which the medium's sequence number is shifted left to number the next write.
///
/// No number is used twice as long as the drive numbers at most 2^20 writes for each program.
const NUMBERS: u32 = 20;

fn failed(path: &str, why: impl std::fmt::Display) -> Refusal {
    refuse(FaCode::FA_ERR_ARGUMENT, format!("{path}: {why}"))
}

impl Drive {
    /// Returns an error if a checkpoint cannot hold this drive.
    fn must_fit_a_checkpoint(&self) -> Result<(), Refusal> {
        let why = if !self.config.layers().is_empty() {
            "a checkpoint cannot hold layers"
        } else if self.geometry().keeps_bytes == 1 {
            "nand.data = ram is not possible: a checkpoint holds content stamps, not bytes"
        } else {
            return Ok(());
        };
        Err(refuse(FaCode::FA_ERR_UNSUPPORTED, why))
    }

    /// Saves a checkpoint: `fa_checkpoint_save`.
    pub fn save(&mut self, path: &str) -> Result<(), Refusal> {
        self.must_fit_a_checkpoint()?;
        let durable = make_durable(self.rest()?);
        self.still_on(self.clock)?;
        durable.map_err(|error| self.refused(error))?;
        let stack = self.rest()?;
        let units = stack.ssd().layout().logical_units;
        let expected: Result<Vec<Stamp>, _> =
            (0..units).map(|lpn| stack.top().peek_stamp(Lpn(lpn))).collect();
        let expected = expected.map_err(|error| self.refused(error))?;
        // a file that cannot be created is an error while the drive is still on
        let beside = format!("{path}.new");
        let file = File::create(&beside).map_err(|error| failed(&beside, error))?;
        let Power::On(stack) = std::mem::replace(&mut self.power, Power::Gone("saving".into()))
        else {
            unreachable!("the drive is idle, and its power is on")
        };
        let image = stack.into_media().pop().expect("a drive without layers").into_image();
        let mut out = BufWriter::new(file);
        let of = (env!("CARGO_PKG_VERSION"), parts::parts().added);
        let (image, expected, written) =
            checkpoint::save(&self.config, (image, expected), self.seed, of, &mut out);
        let written = written.and_then(|()| out.flush()).and_then(|()| out.get_ref().sync_all());
        let kept = written.and_then(|()| std::fs::rename(&beside, path));
        if kept.is_err() {
            // an incomplete file is of no use
            let _ = std::fs::remove_file(&beside);
        }
        self.go_on_from(image, &expected)?;
        kept.map_err(|error| failed(path, error))
    }

    /// Loads a checkpoint: `fa_checkpoint_load`.
    pub fn load(&mut self, path: &str) -> Result<(), Refusal> {
        self.must_fit_a_checkpoint()?;
        self.rest()?;
        let file = File::open(path).map_err(|error| failed(path, error))?;
        let read = checkpoint::load(&self.config, parts::parts().added, &mut BufReader::new(file));
        let (image, expected) = read.map_err(|error| failed(path, error))?;
        self.go_on_from(image, &expected)
    }

    /// Switches the drive on with the content of an image.
    ///
    /// Both `save` and `load` call this function, so that the drive behaves the same after each.
    fn go_on_from(&mut self, image: Image, expected: &[Stamp]) -> Result<(), Refusal> {
        self.writes = image.sequence << NUMBERS;
        let mounted = self.config.medium_from(image).and_then(|medium| {
            let mut stack = self.mounted(vec![medium], &[])?;
            let empty = (0..).map(Lpn).zip(expected).filter(|(_, stamp)| **stamp == Stamp::ZERO);
            checkpoint::forget_empty(&mut stack, empty.map(|(lpn, _)| lpn))
                .map_err(|error| error.to_string())?;
            Ok(stack)
        });
        (self.tally, self.cuts) = (Tally::default(), 0);
        match mounted {
            Ok(stack) => self.power = Power::On(stack),
            Err(why) => {
                self.power = Power::Gone(why.clone());
                return Err(refuse(FaCode::FA_ERR_FAILED, why));
            }
        }
        Ok(())
    }
}
