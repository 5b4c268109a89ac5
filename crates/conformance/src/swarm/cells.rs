//! Draws of settings of cells: the bits in a cell, the pages that a program writes, and an SLC
//! cache.

use super::{Swarm, pick};
use flashatlas_crash::subject::{Geometry, Subject};
use flashatlas_types::{PageOrder, Rng, Seed};

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
        if rng.below(2) == 0 {
            self.draw_steps(rng, subject, geometry);
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
        // an SLC cache takes the copies of a FLUSH, so there are no other blocks for them
        let none = "ftl.flush_blocks=0".to_owned();
        let all = sizes.into_iter().chain(times).chain([wear, keep, none]);
        self.try_settings(subject, geometry, all);
        let factor = format!("errors.slc_factor={}", pick(rng, &["0", "0.5", "1"]));
        self.try_settings(subject, geometry, [factor]);
    }

    /// Draws parity over the dies of a frame for one case in three. `id` is the number of the case,
    /// whose other draws do not depend on this one.
    pub(super) fn draw_parity(&self, id: u64, subject: &mut Subject, geometry: &Geometry) {
        let mut rng = Rng::stream(Seed(id), "swarm.parity");
        if rng.below(3) > 0 {
            return;
        }
        let planes = 1 + rng.below(2);
        let parity = [
            "drive.channels=2".to_owned(),
            "drive.ways=2".to_owned(),
            format!("drive.planes={planes}"),
            "drive.frame_channels=2".to_owned(),
            "drive.frame_ways=2".to_owned(),
            format!("drive.frame_planes={planes}"),
            "cache.bytes=64KiB".to_owned(),
            "ecc.parity=die".to_owned(),
        ];
        // other schemes have units of whole frames, which are three pages on each plane
        if !self.try_settings(subject, geometry, parity.clone()) {
            let unit = format!("map.unit={}", planes * 6 * 1024);
            self.try_settings(subject, geometry, parity.into_iter().chain([unit]));
        }
    }

    /// Draws programs in several steps, which need word lines and room for them in the cache.
    fn draw_steps(&self, rng: &mut Rng, subject: &mut Subject, geometry: &Geometry) {
        let mut steps = vec![
            "drive.program_unit=word-line".to_owned(),
            "drive.spare_bytes=512".to_owned(),
            "cache.bytes=1MiB".to_owned(),
            "timing.t_program_first=200us".to_owned(),
            "timing.t_program_second=300us".to_owned(),
        ];
        let number = 2 + rng.below(2);
        steps.push(format!("ftl.program_steps={number}"));
        steps.extend((number == 3).then(|| "timing.t_program_third=400us".to_owned()));
        let blocks = format!("ftl.flush_blocks={}", 1 + rng.below(2));
        let copies = ["ftl.flush=slc", "timing.t_read_slc=20us", "timing.t_program_slc=75us"];
        match rng.below(4) {
            0 => steps.extend(["ftl.flush=plp", "nand.plp_bytes=16MiB"].map(str::to_owned)),
            1 => steps.extend(copies.map(str::to_owned).into_iter().chain([blocks])),
            _ => {}
        }
        self.try_settings(subject, geometry, steps);
    }
}
