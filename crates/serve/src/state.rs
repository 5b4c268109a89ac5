//! A drive that is powered on, with the image to which its changes are written. Its power may fail,
//! or the drive itself.

use crate::disk::Disk;
use crate::image::Image;
use crate::recorder::Recorder;
use crate::spec::{CutMode, Refused};
use flashatlas_nand::Change;
use flashatlas_sim::{Live, RunError};
use flashatlas_types::{FtlError, HostOp, MediumError, Ps, Request, Rng};
use hdrhistogram::Histogram;

/// Largest number of changes of the medium that wait in memory for the next FLUSH.
const PENDING_MAX: usize = 4096;

/// A drive, its image, and the reason why it is no longer served.
pub struct State {
    /// The drive, or `None` once serving has ended or failed.
    pub live: Option<Live>,
    pub image: Option<Image<Box<dyn Disk>>>,
    pub gone: Option<Refused>,
    /// Delays of replies, in nanoseconds.
    pub late: Histogram<u64>,
    pub recorder: Option<Recorder>,
    pub cut_mode: CutMode,
    /// Random numbers that determine the state after a power failure.
    pub rng: Rng,
}

/// Returns the refusal for an error of a drive that has power.
fn of_error(error: &RunError) -> Refused {
    let text = error.to_string();
    match error {
        RunError::WornOut { .. } | RunError::Drive { error: FtlError::NoSpace { .. }, .. } => {
            Refused::NoSpace(text)
        }
        RunError::Drive {
            error: FtlError::Medium(MediumError::Unreadable(_) | MediumError::Damaged(_)),
            ..
        } => Refused::Unreadable(text),
        _ => Refused::Failed(text),
    }
}

impl State {
    /// Returns the drive while it is on.
    pub fn on(&mut self) -> Result<&mut Live, Refused> {
        let gone = &self.gone;
        self.live.as_mut().ok_or_else(|| {
            gone.clone().unwrap_or_else(|| Refused::Failed("the server has ended".into()))
        })
    }

    /// Advances simulated time to `until`.
    pub fn advance(&mut self, until: Ps) -> Result<(), Refused> {
        let advanced = self.on()?.advance(until);
        advanced.map_err(|error| self.refused(&error))?;
        self.lost_power()
    }

    /// Returns the refusal for an error of the drive. If the error stops the drive, serving ends.
    pub fn refused(&mut self, error: &RunError) -> Refused {
        let Some(live) = &mut self.live else { return Refused::PowerLost };
        if live.drive().ssd().medium().has_lost_power() {
            return self.lost_power().err().unwrap_or(Refused::PowerLost);
        }
        let mut refused = of_error(error);
        if live.drive().ssd().is_read_only()
            && !matches!(refused, Refused::Unreadable(_) | Refused::Range(_))
        {
            refused = Refused::ReadOnly(error.to_string());
        }
        if live.drive().top().failure().is_some() {
            let _ = self.persist(true);
            let _ = self.image.as_mut().map(Image::distrust);
            let gone = match refused.clone() {
                // later commands may read other data
                Refused::Unreadable(why) => Refused::Failed(why),
                other => other,
            };
            (self.live, self.gone) = (None, Some(gone));
        }
        refused
    }

    /// Returns an error if the power has failed.
    ///
    /// In that case, the image gets the operations that survive the failure, and nothing else.
    pub fn lost_power(&mut self) -> Result<(), Refused> {
        let lost = |live: &mut Live| live.drive().ssd().medium().has_lost_power();
        if !self.live.as_mut().is_some_and(lost) {
            return Ok(());
        }
        let kept = match (&mut self.image, &mut self.live) {
            (Some(image), Some(live)) => {
                let medium = live.drive().ssd_mut().faults();
                image
                    .lose_power(medium, self.cut_mode, &mut self.rng)
                    .map_err(|error| format!("the image cannot be read or written: {error}"))
            }
            _ => Ok(()),
        };
        self.live = None;
        drop(self.recorder.take().map(Recorder::finish));
        self.gone = Some(match kept {
            Ok(()) => Refused::PowerLost,
            Err(why) => Refused::Failed(why),
        });
        Err(Refused::PowerLost)
    }

    /// Carries out a client's command and records it, if a trace is recorded.
    ///
    /// The command arrived at time `at` of the server's clock.
    pub fn of_client(
        &mut self,
        request: &Request,
        data: Option<&[u8]>,
        out: Option<&mut [u8]>,
        (at, waits): (Ps, bool),
    ) -> Result<u64, Refused> {
        if let Some(recorder) = &mut self.recorder {
            recorder.put(request, at);
        }
        self.submit(request, data, out, waits)
    }

    /// Carries out a command and fills `out` with the data that it read. Returns the command's
    /// ticket, or 0 without `waits`.
    pub fn submit(
        &mut self,
        request: &Request,
        data: Option<&[u8]>,
        out: Option<&mut [u8]>,
        waits: bool,
    ) -> Result<u64, Refused> {
        let submitted = self.on()?.submit(request, data, waits).map(|(ticket, read)| {
            if let Some(out) = out {
                out.copy_from_slice(read);
            }
            ticket
        });
        let ticket = submitted.map_err(|error| self.refused(&error))?;
        self.lost_power()?;
        let durable = request.op == HostOp::Flush || request.fua;
        // it is unknown which part the host has written, so the next mount checks the image
        self.persist(durable).map_err(|why| self.fail(why))?;
        Ok(ticket)
    }

    /// Ends serving for this reason, and returns the refusal.
    pub fn fail(&mut self, why: String) -> Refused {
        (self.live, self.gone) = (None, Some(Refused::Failed(why.clone())));
        Refused::Failed(why)
    }

    /// Writes the medium's changes to the image. With `durable`, they are written and synced
    /// immediately; otherwise they may wait.
    pub fn persist(&mut self, durable: bool) -> Result<(), String> {
        let (Some(image), Some(live)) = (&mut self.image, &mut self.live) else { return Ok(()) };
        let medium = live.drive().ssd_mut().faults();
        if !durable && medium.journal_len() < PENDING_MAX {
            return Ok(());
        }
        let changes: Vec<Change> = medium.take_journal();
        let kept = image.keep_clock(medium);
        let written = kept
            .and_then(|()| image.write(&changes))
            .and_then(|()| if durable { image.sync() } else { Ok(()) });
        written.map_err(|error| format!("the image cannot be read or written: {error}"))?;
        medium.let_go(&changes);
        Ok(())
    }
}
