//! An array of bytes beside the controller: commands in random order, switches of the cache, and
//! power failures.

use crate::ram::Ram;
use crate::{MediaShape, Rig, SHAPE, Settings, new_durable};
use flashatlas_fixtures::proofs::cases;
use flashatlas_nvme::{Durable, Place, Status, admin, feature, io};
use flashatlas_types::{Rng, Seed};

const UNITS: usize = 8;
const UNIT: usize = 4096;
const BLOCK: usize = 512;
const FUA: u32 = 1 << 30;
const DEAC: u32 = 1 << 25;

/// Contents that a unit may have; reads return the last one.
struct Unit(Vec<Vec<u8>>);

impl Unit {
    fn now(&self) -> &Vec<u8> {
        &self.0[self.0.len() - 1]
    }

    /// Changes a part. The old contents may come back until they are dropped.
    fn change(&mut self, from: usize, bytes: &[u8]) {
        let mut content = self.now().clone();
        content[from..from + bytes.len()].copy_from_slice(bytes);
        self.0.push(content);
    }

    fn make_durable(&mut self) {
        self.0.drain(..self.0.len() - 1);
    }
}

struct Model {
    units: Vec<Unit>,
    rng: Rng,
}

impl Model {
    fn below(&mut self, bound: usize) -> usize {
        self.rng.below(bound as u64) as usize
    }

    fn chance(&mut self) -> bool {
        self.rng.below(2) == 0
    }

    fn change(&mut self, first: usize, bytes: &[u8], durable: bool) {
        for (index, block) in bytes.chunks(BLOCK).enumerate() {
            let at = (first + index) * BLOCK;
            self.units[at / UNIT].change(at % UNIT, block);
        }
        if durable {
            let last = (first * BLOCK + bytes.len()).div_ceil(UNIT);
            self.units[first * BLOCK / UNIT..last].iter_mut().for_each(Unit::make_durable);
        }
    }

    fn now(&self, first: usize, blocks: usize) -> Vec<u8> {
        let all: Vec<u8> = self.units.iter().flat_map(|unit| unit.now().clone()).collect();
        all[first * BLOCK..(first + blocks) * BLOCK].to_vec()
    }
}

/// Carries out one random command on the controller, and the same command on the model.
fn step(rig: &mut Rig, model: &mut Model, (admin, io): (Place, Place), cache: &mut bool) {
    let first = model.below(UNITS * 8);
    let blocks = 1 + model.below(UNITS * 8 - first).min(19);
    let (fua, byte) = (model.chance() && model.chance(), model.below(255) as u8 + 1);
    let options = (blocks as u32 - 1) | if fua { FUA } else { 0 };
    let durable = fua || !*cache;
    let data = vec![byte; blocks * BLOCK];
    let bytes = data.len() as u32;
    match model.below(8) {
        0..=2 => {
            let write = rig.io(io::WRITE, first as u64, 1, bytes).dword(12, options);
            assert_eq!(rig.status(io, write, &data), Status::SUCCESS);
            model.change(first, &data, durable);
        }
        3 => {
            let survive = rig.ram.shape.trims_survive;
            let deallocate = if survive && model.chance() { DEAC } else { 0 };
            let zeroes = rig.io(io::WRITE_ZEROES, first as u64, 1, 0);
            assert_eq!(
                rig.status(io, zeroes.dword(12, options | deallocate), &[]),
                Status::SUCCESS
            );
            model.change(first, &vec![0; data.len()], durable);
        }
        4 if rig.ram.shape.trims_survive => {
            let (from, to) = (first.div_ceil(8), (first + blocks) / 8);
            let mut range = [0; 16];
            (range[4], range[8]) = (blocks as u8, first as u8);
            let dsm = rig.io(io::DATASET_MANAGEMENT, 0, 1, 16).dword(11, 4).dword(12, 0);
            assert_eq!(rig.status(io, dsm, &range), Status::SUCCESS);
            if from < to {
                model.change(from * 8, &vec![0; (to - from) * UNIT], !*cache);
            }
            if !*cache {
                model.units.iter_mut().for_each(Unit::make_durable); // the switch flushes
            }
        }
        4 | 5 => {
            let read = rig.io(io::READ, first as u64, blocks as u32, bytes);
            let (completion, out) = rig.run(io, read, &[]);
            assert_eq!(completion.status, Status::SUCCESS);
            assert!(out == model.now(first, blocks), "{blocks} blocks at {first}");
        }
        6 => {
            let flush = rig.io(io::FLUSH, 0, 1, 0);
            assert_eq!(rig.status(io, flush, &[]), Status::SUCCESS);
            model.units.iter_mut().for_each(Unit::make_durable);
        }
        _ => {
            let on = model.chance();
            let save = if model.chance() { 1 << 31 } else { 0 };
            let set = rig.admin(admin::SET_FEATURES).dword(10, 0x06 | save).dword(11, on.into());
            assert_eq!(rig.status(admin, set, &[]), Status::SUCCESS);
            if *cache && !on {
                model.units.iter_mut().for_each(Unit::make_durable);
            }
            *cache = on;
        }
    }
}

/// Lets the power fail, and mounts again. Each unit must have one of its possible contents.
fn lose_power(rig: Rig, model: &mut Model, record: Durable) -> Rig {
    let mut ram = rig.ram;
    let mut draws = model.rng.clone();
    ram.lose_power(|| draws.below(2) == 0);
    model.below(2);
    for (unit, content) in model.units.iter_mut().zip(ram.content().chunks(UNIT)) {
        assert!(
            unit.0.iter().any(|allowed| allowed == content),
            "a content that was never written"
        );
        unit.0 = vec![content.to_vec()];
    }
    Rig::with(Settings::default(), ram, record)
}

fn run(seed: u64, trims_survive: bool) {
    let shape = MediaShape { blocks: (UNITS * UNIT / BLOCK) as u64, trims_survive, ..SHAPE };
    let units = (0..UNITS).map(|_| Unit(vec![vec![0; UNIT]])).collect();
    let mut model = Model { units, rng: Rng::stream(Seed(seed), "nvme.model") };
    let mut rig = Rig::with(Settings::default(), Ram::new(shape), new_durable());
    let mut record = new_durable();
    for _ in 0..4 {
        let places = rig.ready("a");
        let mut cache = rig.feature(places.0, feature::WRITE_CACHE, 0) == 1;
        assert_eq!(cache, record.saved.cache.unwrap_or(true), "what was saved");
        for _ in 0..40 {
            step(&mut rig, &mut model, places, &mut cache);
            record = rig.subsystem.durable_changed().unwrap_or(record);
        }
        let bytes = record.to_bytes();
        rig = lose_power(rig, &mut model, Durable::from_bytes(&bytes).expect("a record"));
    }
}

#[test]
fn the_controller_and_an_array_of_bytes_agree_over_power_failures() {
    for seed in 0..cases(400) as u64 {
        run(seed, seed % 2 == 0);
    }
}
