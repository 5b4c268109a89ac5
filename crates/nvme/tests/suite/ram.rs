//! Media in memory, with a write cache that a power failure empties in part.

use flashatlas_nvme::{Health, IoCommand, Media, MediaError, MediaShape};

/// Media in memory. An operation outside of the media panics.
#[derive(Clone)]
pub struct Ram {
    pub shape: MediaShape,
    /// The content that reads return.
    now: Vec<u8>,
    /// The content that survives every power failure.
    durable: Vec<u8>,
    /// Units that were trimmed and not written since. Their old content is in `durable` while
    /// trims do not survive.
    trimmed: Vec<bool>,
    /// Error of the next operation.
    pub fails: Option<MediaError>,
    pub health: Health,
    /// Operations so far: `r`, `w` (`W` with FUA), `t`, `f`.
    pub calls: String,
    /// Commands that were released by other commands.
    pub released: Vec<IoCommand>,
}

impl Ram {
    pub fn new(shape: MediaShape) -> Ram {
        let bytes = shape.bytes() as usize;
        let units = shape.blocks.div_ceil(shape.unit_blocks.into()) as usize;
        Ram {
            shape,
            now: vec![0; bytes],
            durable: vec![0; bytes],
            trimmed: vec![false; units],
            fails: None,
            health: Health::default(),
            calls: String::new(),
            released: Vec::new(),
        }
    }

    fn unit(&self) -> usize {
        (self.shape.unit_blocks * self.shape.block_bytes) as usize
    }

    fn check(&mut self, offset: u64, bytes: u64, call: char) -> Result<(), MediaError> {
        let block = u64::from(self.shape.block_bytes);
        assert!(offset % block == 0 && bytes % block == 0 && bytes > 0, "{bytes} at {offset}");
        let end = offset.checked_add(bytes).expect("no overflow");
        assert!(end <= self.now.len() as u64, "{bytes} at {offset}: outside of the media");
        self.calls.push(call);
        self.fails.take().map_or(Ok(()), Err)
    }

    /// Lets the power fail. For each unit that differs, `keeps` returns `true` if the unit has its
    /// new content.
    pub fn lose_power(&mut self, mut keeps: impl FnMut() -> bool) {
        let unit = self.unit();
        for (index, (now, durable)) in
            self.now.chunks_mut(unit).zip(self.durable.chunks_mut(unit)).enumerate()
        {
            let forgotten = self.trimmed[index] && !self.shape.trims_survive;
            if now != durable && (forgotten || !keeps()) {
                now.copy_from_slice(durable);
            }
            durable.copy_from_slice(now);
            self.trimmed[index] = false;
        }
        self.calls.clear();
        self.released.clear();
    }

    /// Returns everything that reads return.
    pub fn content(&self) -> &[u8] {
        &self.now
    }

    /// Makes units durable, except trims that do not survive.
    fn persist(&mut self, units: std::ops::Range<usize>) {
        let unit = self.unit();
        for index in units {
            if self.trimmed[index] && !self.shape.trims_survive {
                continue;
            }
            let from = index * unit;
            let to = (from + unit).min(self.now.len());
            self.durable[from..to].copy_from_slice(&self.now[from..to]);
        }
    }
}

impl Media for Ram {
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), MediaError> {
        self.check(offset, out.len() as u64, 'r')?;
        out.copy_from_slice(&self.now[offset as usize..][..out.len()]);
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), MediaError> {
        self.check(offset, data.len() as u64, if fua { 'W' } else { 'w' })?;
        let (from, to) = (offset as usize, offset as usize + data.len());
        self.now[from..to].copy_from_slice(data);
        let units = from / self.unit()..to.div_ceil(self.unit());
        self.trimmed[units.clone()].fill(false);
        if fua || !self.shape.volatile_cache {
            self.persist(units);
        }
        Ok(())
    }

    fn trim(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        self.check(offset, bytes, 't')?;
        let unit = self.unit();
        let (from, to) = (offset as usize, (offset + bytes) as usize);
        let units = from.div_ceil(unit)..to / unit;
        if units.start < units.end {
            self.now[units.start * unit..units.end * unit].fill(0);
            self.trimmed[units.clone()].fill(true);
            if !self.shape.volatile_cache {
                self.persist(units);
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), MediaError> {
        self.calls.push('f');
        self.fails.take().map_or(Ok(()), Err)?;
        self.persist(0..self.trimmed.len());
        Ok(())
    }

    fn health(&mut self) -> Health {
        self.health.clone()
    }
}
