//! Mechanisms that log-block schemes share. Each scheme lists the mechanisms that it uses.

use flashatlas_types::Mechanism;

pub(crate) const IN_PLACE: Mechanism = Mechanism::new("write in place", "merges.in_place");
pub(crate) const SWITCH: Mechanism = Mechanism::new("switch merge", "merges.log_blocks.switch");
pub(crate) const PARTIAL: Mechanism = Mechanism::new("partial merge", "merges.log_blocks.partial");
pub(crate) const FULL: Mechanism = Mechanism::new("full merge", "merges.log_blocks.full");
pub(crate) const DEAD: Mechanism = Mechanism::new("dead merge", "merges.log_blocks.dead");
pub(crate) const IN_IDLE_TIME: Mechanism =
    Mechanism::new("merges in idle time", "scheme.idle_steps").without(&["ftl.idle_log_blocks=0"]);
