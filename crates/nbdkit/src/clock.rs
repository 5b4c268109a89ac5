//! The clock of the machine: with the binding of Python and the benches the only one.

use flashatlas_serve::Clock;
use flashatlas_types::Ps;
use std::time::{Duration, Instant};

/// Time since it was made.
pub struct Wall(Instant);

impl Wall {
    /// Returns a clock that begins now.
    #[allow(clippy::disallowed_methods, reason = "replies are held until the drive would answer")]
    pub fn begin() -> Wall {
        Wall(Instant::now())
    }
}

impl Clock for Wall {
    fn now(&self) -> Ps {
        Ps(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX / 1000) * 1000)
    }

    fn sleep_until(&self, at: Ps) {
        let left = Duration::from_nanos(at.0.saturating_sub(self.now().0) / 1000);
        if !left.is_zero() {
            std::thread::sleep(left);
        }
    }
}
