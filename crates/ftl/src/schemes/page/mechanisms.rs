//! The mechanisms of the page-mapped FTL, each with its counter in the run record.

use flashatlas_types::Mechanism;

pub(super) const MECHANISMS: &[Mechanism] = &[
    Mechanism::new("collection before a write", "gc.foreground"),
    Mechanism::new("collection in idle time", "gc.idle").without(&["ftl.idle_free=0"]),
    Mechanism::new("partial collection", "scheme.partial_frames").without(&["ftl.gc_pace=burst"]),
    Mechanism::new("fold of an SLC cache", "scheme.slc_folds")
        .without(&["ftl.slc=none", "ftl.flush=pad"]),
    Mechanism::new("skipped upper pages", "scheme.lower_pages_skipped")
        .without(&["ftl.lower_pages=none"]),
    Mechanism::new("backups of lower pages", "scheme.lower_pages_backed_up")
        .without(&["ftl.lower_pages=none"]),
    Mechanism::new("copies inside a die", "scheme.copied_in_die").without(&["ftl.copyback=none"]),
    Mechanism::new("steps of a program", "scheme.steps_finished").without(&["ftl.program_steps=1"]),
    Mechanism::new("copies for a FLUSH", "scheme.flush_copies").without(&["ftl.flush=pad"]),
    Mechanism::new("static wear levelling", "gc.wear").without(&["ftl.wear_static=false"]),
    Mechanism::new("throttled writes", "controller.throttled_writes")
        .without(&["ftl.throttle_from=0", "ftl.throttle_rate=0"]),
];
