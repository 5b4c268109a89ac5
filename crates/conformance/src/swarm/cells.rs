//! Draws of settings of cells: the bits in a cell, the pages that a program writes, and an SLC
//! cache.

use super::{Swarm, pick};
use flashatlas_crash::subject::{Geometry, Subject};
use flashatlas_types::{PageOrder, Rng};

impl Swarm {
    /// Draws settings that depend on each other together, because single draws of these parameters
    /// seldom fit.
    pub(super) fn draw_cells(&self, rng: &mut Rng, subject: &mut Subject, geometry: &Geometry) {
        if rng.below(3) > 0 {
            return;
        }
        let cell = pick(rng, &["mlc", "tlc", "qlc"]);
        self.try_settings(subject, geometry, [format!("drive.cell={cell}")]);
        if rng.below(2) == 0 {
            // a frame then has more slots, whose record takes more spare bytes
            let whole = ["drive.program_unit=word-line", "drive.spare_bytes=512"];
            self.try_settings(subject, geometry, whole.map(str::to_owned));
        }
        let order = format!("drive.page_order={}", pick(rng, &PageOrder::NAMES));
        let pages = format!("drive.pages={}", 24 * (1 + rng.below(2)));
        self.try_settings(subject, geometry, [order, pages]);
        let defence = pick(rng, &["none", "skip", "backup"]);
        self.try_settings(subject, geometry, [format!("ftl.lower_pages={defence}")]);
        let (statics, dynamics) = (1 + rng.below(3), rng.below(6));
        let sizes = match rng.below(4) {
            0 => return,
            1 => vec!["ftl.slc=static".to_owned(), format!("ftl.slc_static={statics}")],
            2 => vec!["ftl.slc=dynamic".to_owned(), format!("ftl.slc_dynamic={dynamics}")],
            _ => vec![
                "ftl.slc=hybrid".to_owned(),
                format!("ftl.slc_static={statics}"),
                format!("ftl.slc_dynamic={dynamics}"),
            ],
        };
        let times = ["timing.t_read_slc=20us", "timing.t_program_slc=75us"].map(str::to_owned);
        let wear = format!("nand.slc_wear={}", pick(rng, &["1", "0.1", "0"]));
        let keep = format!("ftl.slc_keep={}", rng.below(3));
        let all = sizes.into_iter().chain(times).chain([wear, keep]);
        self.try_settings(subject, geometry, all);
    }
}
