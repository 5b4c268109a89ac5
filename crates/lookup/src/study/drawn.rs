//! Requests that are drawn at random.

use super::{Gathered, LookupRequest, StudyError};
use flashatlas_types::{Rng, Seed};
use rustc_hash::FxHashMap;

/// Name of the stream of random numbers.
const STREAM: &str = "lookup";

/// Returns `value`, a share from 0 to `most`, in millionths.
fn share(key: &'static str, value: f64, most: f64) -> Result<u32, StudyError> {
    if (0.0..=most).contains(&value) {
        Ok((value * 1e6) as u32)
    } else {
        Err(StudyError::Share { key, value, most })
    }
}

/// Random sets, scanned to their ends.
#[derive(Clone, Copy, Debug)]
pub struct DrawnSets {
    /// Number of lookups.
    pub lookups: u64,
    /// Share of lookups in the set of the previous lookup.
    pub repeat: f64,
    /// Share of sets whose number is a multiple of four in the other lookups. The rest of these
    /// lookups goes to the remaining sets. With `None`, these lookups go to any set.
    pub skew: Option<f64>,
}

impl DrawnSets {
    /// Draws lookups in a table of `sets` sets. `push` takes each lookup, unless `all` is full.
    ///
    /// # Errors
    /// Returns an error for a share out of its range, for too many lookups, and the error of
    /// `push`.
    pub fn draw<E: From<StudyError>>(
        self,
        sets: u32,
        seed: Seed,
        all: &mut Gathered,
        mut push: impl FnMut(&mut Gathered, LookupRequest) -> Result<(), E>,
    ) -> Result<(), E> {
        all.room_for(self.lookups)?;
        let repeat = share("repeat", self.repeat, 1.0)?;
        let skew = self.skew.map(|skew| share("skew", skew, 1.0)).transpose()?;
        if skew.is_some() && sets < 4 {
            return Err(StudyError::FewSets(sets).into());
        }
        let mut rng = Rng::stream(seed, STREAM);
        let mut set = 0;
        for _ in 0..self.lookups {
            if all.is_full() {
                break;
            }
            if !rng.chance(repeat) {
                let any = rng.below(sets.into()) as u32;
                set = match skew {
                    None => any,
                    Some(skew) if rng.chance(skew) => any / 4 * 4,
                    Some(_) => any / 4 * 4 + 1 + rng.below(3) as u32,
                };
            }
            push(all, LookupRequest::Set(set))?;
        }
        Ok(())
    }
}

/// Files at random distinct addresses, looked up and then inserted one by one. Requests for known
/// files come in between.
#[derive(Clone, Copy, Debug)]
pub struct DrawnFiles {
    /// Number of files.
    pub files: u64,
    /// Addresses are multiples of this number.
    pub stride: u32,
    /// Share of requests for the file of the previous request.
    pub again: f64,
    /// Share of the other requests that go to any known file.
    pub known: f64,
    /// Lookups of known files at the end.
    pub lookups: u64,
}

impl DrawnFiles {
    /// Draws files among addresses of `bits` bits. `push` takes each request, unless `all` is full.
    ///
    /// # Errors
    /// Returns an error for numbers that make no sense, for too many files, and the error of
    /// `push`.
    pub fn draw<E: From<StudyError>>(
        self,
        bits: u32,
        seed: Seed,
        all: &mut Gathered,
        mut push: impl FnMut(&mut Gathered, LookupRequest) -> Result<(), E>,
    ) -> Result<(), E> {
        let files = self.files;
        all.room_for(files.saturating_add(self.lookups))?;
        // not all requests may be for known files, because the next new file would never come
        let [again, known] =
            [share("again", self.again, 0.999)?, share("known", self.known, 0.999)?];
        super::at_least("stride", self.stride.into(), 1)?;
        let stride = u64::from(self.stride);
        let room = (1u64 << bits).div_ceil(stride);
        if files == 0 || files > room {
            return Err(StudyError::Files { files, room, stride, bits }.into());
        }
        let mut rng = Rng::stream(seed, STREAM);
        let mut addresses = Addresses { drawn: Vec::new(), moved: FxHashMap::default(), room };
        let file = |number: u32| LookupRequest::Pages((u64::from(number) * stride) as u32, 1);
        while (addresses.drawn.len() as u64) < files && !all.is_full() {
            let number = match addresses.drawn.last() {
                Some(&last) if rng.chance(again) => last,
                Some(_) if rng.chance(known) => addresses.any(&mut rng),
                _ => addresses.draw(&mut rng),
            };
            push(all, file(number))?;
        }
        for _ in 0..self.lookups {
            if all.is_full() {
                break;
            }
            let number = addresses.any(&mut rng);
            push(all, file(number))?;
        }
        Ok(())
    }
}

/// Distinct numbers below `room`, drawn one by one: a shuffle that stores only moved numbers.
struct Addresses {
    drawn: Vec<u32>,
    moved: FxHashMap<u32, u32>,
    room: u64,
}

impl Addresses {
    fn draw(&mut self, rng: &mut Rng) -> u32 {
        let place = self.drawn.len() as u32;
        let other = place + rng.below(self.room - u64::from(place)) as u32;
        let own = self.moved.remove(&place).unwrap_or(place);
        let number =
            if other == place { own } else { self.moved.insert(other, own).unwrap_or(other) };
        self.drawn.push(number);
        number
    }

    /// Returns a random number among the drawn numbers.
    fn any(&self, rng: &mut Rng) -> u32 {
        self.drawn[rng.below(self.drawn.len() as u64) as usize]
    }
}
