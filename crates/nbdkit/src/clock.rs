//! The clock of the machine. Besides this crate, only the Python binding and the benches use the
//! machine's clock.

use flashatlas_serve::Clock;
use flashatlas_types::Ps;
use std::time::{Duration, Instant};

/// Clock that starts at zero when it is made.
pub struct Wall(Instant);

impl Wall {
    /// Returns a clock that starts now.
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
