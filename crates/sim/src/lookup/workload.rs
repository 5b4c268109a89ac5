//! The requests of a study, from a trace, a generator, or at random.

use super::{LookupSpec, Source};
use crate::Progress;
use crate::notes::{LOOKUP_ADDRESSES_DRAWN, LOOKUP_ALIASES, LOOKUP_FILES, LOOKUP_SETS_DRAWN};
use crate::{Inputs, Opener, RunError};
use flashatlas_lookup::study::{
    Address, Addressing, DrawnFiles, DrawnSets, Gathered, LookupRequest, at_least,
};
use flashatlas_types::{HostOp, Note, Seed};

/// Number of requests between two calls of the progress function.
const PROGRESS_EVERY: usize = 65_536;

/// Number of bytes of a sector.
const SECTOR_BYTES: u64 = flashatlas_types::SECTOR_BYTES as u64;

/// Source of the requests of a study, with everything that is needed to gather them.
pub(super) struct LookupWorkload<'a> {
    pub spec: &'a LookupSpec,
    pub la_bits: u32,
    /// Number of sets of the primary LPMT.
    pub sets: u32,
    pub opener: &'a dyn Opener,
    /// Trace formats and generators.
    pub workloads: flashatlas_workload::Registry,
    pub progress: &'a mut dyn FnMut(Progress) -> bool,
}

impl LookupWorkload<'_> {
    /// Gathers all requests. Returns them, and notes on them.
    ///
    /// # Errors
    /// Returns an error for sources that cannot be read, and for numbers that make no sense.
    pub fn gather(&mut self) -> Result<(Gathered, Vec<Note>), RunError> {
        let spec = self.spec;
        let addressing = Addressing::new(spec.address, spec.unit_sectors, self.la_bits)?;
        at_least("page_bytes", spec.page_bytes.into(), SECTOR_BYTES)?;
        let mut all = Gathered::new(spec.limit)?;
        let (seed, sets, bits) = (Seed(spec.seed), self.sets, self.la_bits);
        let push = |all: &mut Gathered, ask| self.push(all, ask, None);
        let notes = match spec.source {
            Source::Trace(_) | Source::Workload(_) => self.requests(&mut all, addressing)?,
            Source::Sets { lookups, repeat, skew } => {
                let drawn = DrawnSets { lookups, repeat, skew };
                drawn.draw(sets, seed, &mut all, push)?;
                vec![LOOKUP_SETS_DRAWN.note()]
            }
            Source::Files { files, stride, again, known, lookups } => {
                let drawn = DrawnFiles { files, stride, again, known, lookups };
                drawn.draw(bits, seed, &mut all, push)?;
                vec![LOOKUP_ADDRESSES_DRAWN.note()]
            }
        };
        Ok((all, notes))
    }

    fn push(
        &mut self,
        all: &mut Gathered,
        ask: LookupRequest,
        done: Option<f64>,
    ) -> Result<(), RunError> {
        all.push(ask)?;
        let requests = all.asks().len();
        let progress = Progress { phase: "read", requests: requests as u64, share: done };
        if requests % PROGRESS_EVERY == 0 && !(self.progress)(progress) {
            return Err(RunError::Interrupted);
        }
        Ok(())
    }

    /// Gathers the requests of a trace or a generator.
    fn requests(
        &mut self,
        all: &mut Gathered,
        mut addressing: Addressing,
    ) -> Result<Vec<Note>, RunError> {
        let spec = self.spec;
        let inputs = Inputs::new(self.opener, self.workloads, spec.reading.options()?);
        let mut input = match &spec.source {
            Source::Trace(path) => inputs.trace(path, spec.reading.format.as_deref(), false)?,
            Source::Workload(text) => {
                inputs.generated(text, addressing.capacity()?, Seed(spec.seed))?
            }
            _ => unreachable!("only these are read"),
        };
        input.must_say(&spec.reading)?;
        while !all.is_full() {
            let Some(record) = input.next_record()? else { break };
            let request = record.request;
            if matches!(request.op, HostOp::Flush) {
                continue;
            }
            let la = addressing.of(record.device, request.lba.0).map_err(|error| {
                let number = all.asks().len() + 1;
                RunError::Unusable(format!("{}, request {number}: {error}", input.name))
            })?;
            let bytes = u64::from(request.sectors) * SECTOR_BYTES;
            let ask = match request.op {
                HostOp::Trim => LookupRequest::Delete(la),
                _ => LookupRequest::Pages(la, bytes.div_ceil(spec.page_bytes.into()).max(1) as u32),
            };
            self.push(all, ask, input.share_read())?;
        }
        let mut notes = vec![LOOKUP_FILES.with([("sectors", u64::from(spec.unit_sectors).into())])];
        if spec.address == Address::LowBits {
            notes.push(LOOKUP_ALIASES.with([
                ("bits", self.la_bits.into()),
                ("aliases", addressing.aliases.into()),
                ("requests", all.asks().len().into()),
            ]));
        }
        Ok(notes)
    }
}
