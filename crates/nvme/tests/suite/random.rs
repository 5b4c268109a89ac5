//! Any 64 bytes with any data: never a panic, and never a range outside of the media.

use crate::{ENABLE, Rig, SHAPE};
use flashatlas_fixtures::proofs::cases;
use flashatlas_nvme::{Entry, Lost, MediaError, Place, QueueId, Step, admin, fabrics, io};
use proptest::prelude::*;

/// Makes entries, many of them close to supported commands.
fn entry() -> impl Strategy<Value = Entry> {
    let opcodes = prop_oneof![
        any::<u8>(),
        prop_oneof![Just(io::READ), Just(io::WRITE), Just(io::COMPARE), Just(io::VERIFY)],
        prop_oneof![Just(io::WRITE_ZEROES), Just(io::DATASET_MANAGEMENT), Just(io::FLUSH)],
        prop_oneof![Just(admin::IDENTIFY), Just(admin::GET_LOG_PAGE), Just(admin::ABORT)],
        prop_oneof![Just(admin::GET_FEATURES), Just(admin::SET_FEATURES)],
        prop_oneof![Just(admin::ASYNC_EVENT_REQUEST), Just(fabrics::OPCODE)],
    ];
    let small = || prop_oneof![0u32..40, any::<u32>(), 0u32..40, Just(u32::MAX)];
    let bytes = proptest::collection::vec(any::<u8>(), 64);
    (bytes, opcodes, small(), proptest::collection::vec(small(), 6), 0u8..4).prop_map(
        |(bytes, opcode, nsid, dwords, tame)| {
            let mut array = [0; 64];
            array.copy_from_slice(&bytes);
            let mut entry = Entry(array);
            if tame > 0 {
                entry.0[0] = opcode;
                entry.0[1] = 0x40;
                let words = [1].into_iter().chain(10..16);
                let values = [nsid].into_iter().chain(dwords);
                entry = words.zip(values).fold(entry, |entry, (at, value)| entry.dword(at, value));
            }
            if tame > 1 {
                entry.0[32..36].copy_from_slice(&(1u32 << 20).to_le_bytes());
                entry.0[39] = 0x5A;
                entry.0[4] = if opcode == fabrics::OPCODE { nsid as u8 % 9 } else { 1 };
            }
            entry
        },
    )
}

#[derive(Clone, Debug)]
enum Act {
    Begin { queue: u16, entry: Entry, data: usize, wants: bool },
    CarryOut(usize),
    Fail(usize),
    Enable,
    Lose(u16),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0u16..4, entry(), prop_oneof![0usize..6000, Just(1 << 20)], any::<bool>())
            .prop_map(|(queue, entry, data, wants)| Act::Begin { queue, entry, data, wants }),
        4 => any::<usize>().prop_map(Act::CarryOut),
        1 => any::<usize>().prop_map(Act::Fail),
        2 => Just(Act::Enable),
        1 => (0u16..4).prop_map(Act::Lose),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(4000) as u32))]

    #[test]
    fn any_commands_in_any_order(acts in proptest::collection::vec(act(), 1..40)) {
        let mut rig = Rig::on(SHAPE);
        let (mut admin, _) = rig.ready("a");
        let bytes = vec![3; 1 << 20];
        let mut flying: Vec<(flashatlas_nvme::IoCommand, usize)> = Vec::new();
        for act in acts {
            match act {
                Act::Begin { queue, entry, data, wants } => {
                    let place = Place { controller: admin.controller, queue: QueueId(queue) };
                    let wanted = rig.subsystem.wants(place, &entry);
                    prop_assert!(wanted.is_err() || *wanted.as_ref().unwrap() <= 1 << 20);
                    if wants && wanted.is_err() {
                        continue;
                    }
                    let (step, out) = rig.begin(place, &entry, &bytes[..data]);
                    prop_assert!(out.len() <= 1 << 20);
                    match step {
                        Step::Done(done) => prop_assert_eq!(done.id, entry.id()),
                        Step::Io(command) => flying.push((command, data)),
                        Step::Held => {}
                    }
                }
                Act::CarryOut(at) | Act::Fail(at) if !flying.is_empty() => {
                    if matches!(act, Act::Fail(_)) {
                        rig.ram.fails = Some(MediaError::Other);
                    }
                    let (command, data) = flying.swap_remove(at % flying.len());
                    rig.carry_out(&command, &bytes[..data]);
                    flying.extend(rig.ram.released.drain(..).map(|command| (command, 0)));
                }
                Act::CarryOut(_) | Act::Fail(_) => {}
                Act::Enable => rig.enable(admin),
                Act::Lose(queue) => {
                    let place = Place { controller: admin.controller, queue: QueueId(queue) };
                    if rig.subsystem.lost(place) == Lost::Association {
                        admin = rig.connect("a");
                        rig.enable(admin);
                    }
                }
            }
            rig.subsystem.take_completions(admin.controller);
            rig.subsystem.durable_changed();
        }
        // everything comes to an end, and then a controller works
        while let Some((command, data)) = flying.pop() {
            rig.carry_out(&command, &bytes[..data]);
            flying.extend(rig.ram.released.drain(..).map(|command| (command, 0)));
        }
        rig.ram.fails = None;
        rig.ready("b");
    }
}

impl Rig {
    /// Writes the configuration that enables the controller, in any state of the controller.
    fn enable(&mut self, admin: Place) {
        for value in [0, ENABLE] {
            let id = self.id();
            let entry = Entry::property_set(id, flashatlas_nvme::offset::CONFIGURATION, value);
            let (step, _) = self.begin(admin, &entry, &[]);
            assert!(matches!(step, Step::Done(_)), "{step:?}");
        }
    }
}
