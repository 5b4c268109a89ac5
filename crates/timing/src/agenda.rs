//! Future events, in order of time. Events of the same instant are in the order in which they were
//! set.
//!
//! Setting or taking an event takes a time that is logarithmic in the number of future events.
//! There is one event for each timer that runs, and one for each die, channel and direction of the
//! link that is at work.

use flashatlas_types::Ps;

/// Kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The cells of a die have finished, or have stopped for a read.
    Die(u32),
    /// No event: a later event has replaced it ([`Agenda::set_die`]).
    Void,
    /// A channel is free.
    Channel(u32),
    /// The host link is free, towards the drive (0) or from it (1).
    Link(u32),
    /// The timer of an operation has run out.
    Timer(u32),
    /// A core has finished its work on an operation.
    Core(u32),
    /// The shared DRAM is free.
    Dram,
}

/// An event encoded as one number, so that a heap compares and moves little data. From the highest
/// bit on, the fields are the event's time (64 bits), its number (34 bits), its kind (2 bits), and
/// its die, channel, direction or operation (28 bits).
type Key = u128;

const WHICH_BITS: u32 = 28;
const NUMBER_AT: u32 = WHICH_BITS + 2;
/// Greatest number of an event. After this number, all future events get new numbers.
const LAST_NUMBER: u64 = (1 << (64 - NUMBER_AT)) - 1;

const DIE: u64 = 0;
const CHANNEL: u64 = 1;
const LINK: u64 = 2;
const TIMER: u64 = 3;

/// Number of directions of the link. Of the events of their kind, the next number is of the shared
/// DRAM, and higher numbers are of cores.
const WAYS: u32 = 2;
const FIRST_CORE: u32 = WAYS + 1;

const fn number_of(key: Key) -> u64 {
    key as u64 >> NUMBER_AT
}

/// Binary heap of keys, with the least key first.
///
/// The place of a key that was taken stays vacant until the next key is put. An event mostly sets
/// another event, so a put mostly follows a take. A take and the put after it then need one walk
/// down the heap. Separately, they would need one walk down and two walks up.
#[derive(Debug, Default)]
struct Heap {
    keys: Vec<Key>,
    /// `true` if the first key was taken.
    vacant: bool,
}

impl Heap {
    #[inline]
    fn least(&self) -> Option<Key> {
        match (self.vacant, &self.keys[..]) {
            (false, [first, ..]) => Some(*first),
            (true, [_, left, right, ..]) => Some(*left.min(right)),
            (true, [_, left]) => Some(*left),
            _ => None,
        }
    }

    #[inline]
    fn put(&mut self, key: Key) {
        if self.vacant {
            self.vacant = false;
            return self.sink(key);
        }
        let mut at = self.keys.len();
        self.keys.push(key);
        while at > 0 && key < self.keys[(at - 1) / 2] {
            self.keys[at] = self.keys[(at - 1) / 2];
            at = (at - 1) / 2;
        }
        self.keys[at] = key;
    }

    /// Takes the least key, which must exist.
    #[inline]
    fn take(&mut self) -> Key {
        if self.vacant {
            let last = self.keys.pop().expect("a vacant place");
            self.sink(last);
        }
        self.vacant = true;
        self.keys[0]
    }

    /// Puts a key into the first place, and moves it down to its right place.
    #[inline]
    fn sink(&mut self, key: Key) {
        let keys = &mut self.keys[..];
        let (mut at, mut child) = (0, 1);
        while child < keys.len() {
            if child + 1 < keys.len() {
                child += usize::from(keys[child + 1] < keys[child]);
            }
            if key < keys[child] {
                break;
            }
            keys[at] = keys[child];
            (at, child) = (child, 2 * child + 1);
        }
        keys[at] = key;
    }

    /// Takes all keys, in no particular order.
    fn drain(&mut self) -> Vec<Key> {
        let mut keys = std::mem::take(&mut self.keys);
        if std::mem::take(&mut self.vacant) {
            keys.swap_remove(0);
        }
        keys
    }
}

/// The future events.
#[derive(Debug)]
pub(crate) struct Agenda {
    ahead: Heap,
    /// Number of the newest event.
    newest: u64,
    /// Number of the valid event of each die.
    of_dies: Vec<u64>,
}

impl Agenda {
    pub fn new(dies: usize) -> Agenda {
        Agenda { ahead: Heap::default(), newest: 0, of_dies: vec![0; dies] }
    }

    /// Sets the time at which the cells of a die finish or stop. This time replaces an earlier
    /// time.
    #[inline]
    pub fn set_die(&mut self, at: Ps, die: u32) {
        self.set(at, DIE, die);
        self.of_dies[die as usize] = self.newest;
    }

    #[inline]
    pub fn set_channel(&mut self, at: Ps, channel: u32) {
        self.set(at, CHANNEL, channel);
    }

    #[inline]
    pub fn set_link(&mut self, at: Ps, way: u32) {
        self.set(at, LINK, way);
    }

    #[inline]
    pub fn set_core(&mut self, at: Ps, operation: u32) {
        self.set(at, LINK, FIRST_CORE + operation);
    }

    #[inline]
    pub fn set_dram(&mut self, at: Ps) {
        self.set(at, LINK, WAYS);
    }

    #[inline]
    pub fn set_timer(&mut self, at: Ps, operation: u32) {
        self.set(at, TIMER, operation);
    }

    #[inline]
    fn set(&mut self, at: Ps, kind: u64, which: u32) {
        assert!(which >> WHICH_BITS == 0, "more than 2^28 operations are in flight");
        if self.newest == LAST_NUMBER {
            self.number_anew();
        }
        self.newest += 1;
        let low = self.newest << NUMBER_AT | kind << WHICH_BITS | u64::from(which);
        self.ahead.put(Key::from(at.0) << 64 | Key::from(low));
    }

    /// Returns the time of the next event, if there is one.
    #[inline]
    pub fn next_at(&self) -> Option<Ps> {
        self.ahead.least().map(|key| Ps((key >> 64) as u64))
    }

    /// Takes the next event, or returns `None` if no event comes at `until` or earlier.
    #[inline]
    pub fn take(&mut self, until: Ps) -> Option<(Ps, Event)> {
        let at = self.next_at().filter(|&at| at <= until)?;
        let key = self.ahead.take();
        let low = key as u64;
        let which = low as u32 & ((1 << WHICH_BITS) - 1);
        let event = match low >> WHICH_BITS & 3 {
            DIE if self.of_dies[which as usize] != number_of(key) => Event::Void,
            DIE => Event::Die(which),
            CHANNEL => Event::Channel(which),
            LINK if which < WAYS => Event::Link(which),
            LINK if which == WAYS => Event::Dram,
            LINK => Event::Core(which - FIRST_CORE),
            _ => Event::Timer(which),
        };
        Some((at, event))
    }

    /// Numbers the future events from 1 on, in their order. Valid events of dies stay valid.
    #[cold]
    fn number_anew(&mut self) {
        let mut keys = self.ahead.drain();
        keys.sort_unstable_by_key(|&key| number_of(key));
        let nothing = vec![0; self.of_dies.len()];
        let held = std::mem::replace(&mut self.of_dies, nothing);
        self.newest = 0;
        for key in keys {
            self.newest += 1;
            let low = key as u64;
            let which = (low as u32 & ((1 << WHICH_BITS) - 1)) as usize;
            if low >> WHICH_BITS & 3 == DIE && held[which] == number_of(key) {
                self.of_dies[which] = self.newest;
            }
            let low = self.newest << NUMBER_AT | low & ((1 << NUMBER_AT) - 1);
            self.ahead.put(key >> 64 << 64 | Key::from(low));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Rng, Seed};

    #[test]
    fn a_heap_with_a_vacant_place_gives_the_least() {
        let mut rng = Rng::stream(Seed(1), "heap");
        let (mut heap, mut sorted) = (Heap::default(), std::collections::BTreeSet::new());
        for step in 0..20_000 {
            // the heap grows, shrinks until it is empty, and grows again
            if rng.below(10) < if step % 2000 < 1000 { 6 } else { 3 } {
                let key = Key::from(rng.below(1 << 40)) << 64 | step;
                heap.put(key);
                sorted.insert(key);
            } else if let Some(least) = heap.least() {
                assert_eq!((heap.take(), Some(least)), (least, sorted.pop_first()));
            }
            assert_eq!(heap.least().as_ref(), sorted.first());
        }
        assert_eq!(heap.drain().into_iter().collect::<std::collections::BTreeSet<_>>(), sorted);
    }

    /// After events get new numbers, their order and the valid events of the dies are the same.
    #[test]
    fn numbers_that_begin_anew_change_nothing() {
        let fill = |agenda: &mut Agenda| {
            agenda.set_die(Ps(7), 1);
            agenda.set_timer(Ps(5), 30);
            agenda.set_die(Ps(5), 1);
            agenda.set_channel(Ps(5), 2);
            agenda.set_link(Ps(9), 0);
            agenda.set_die(Ps(5), 0);
        };
        let all = |mut agenda: Agenda| -> Vec<_> {
            std::iter::from_fn(|| agenda.take(Ps::MAX)).collect()
        };
        let mut plain = Agenda::new(2);
        fill(&mut plain);
        let plain = all(plain);
        assert_eq!(
            plain.iter().map(|&(at, event)| (at.0, event)).collect::<Vec<_>>(),
            [
                (5, Event::Timer(30)),
                (5, Event::Die(1)),
                (5, Event::Channel(2)),
                (5, Event::Die(0)),
                (7, Event::Void),
                (9, Event::Link(0)),
            ]
        );
        for before in 0..6 {
            let mut agenda = Agenda::new(2);
            agenda.newest = LAST_NUMBER - before;
            fill(&mut agenda);
            assert!(agenda.newest <= 6, "the numbers did not begin anew");
            assert_eq!(all(agenda), plain, "{before} before the last number");
        }
    }
}
