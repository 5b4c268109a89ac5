//! A controller under two hosts that send any commands: 64 bytes of an entry, from queues that they
//! have, with data of any length. The media are a small drive. Each step is 20 bytes of the input.
#![no_main]

use flashatlas_device::{Registry, Stack};
use flashatlas_nvme::drive::{Drive, shape};
use flashatlas_nvme::{
    CommandId, Connect, ControllerId, Durable, Entry, Identity, IoCommand, NamespaceNames, Nqn,
    Place, QueueId, Settings, Step, Subsystem, fabrics, offset,
};
use flashatlas_types::Seed;
use std::collections::VecDeque;

/// Configuration that enables a controller with entries of 64 and 16 bytes.
const ENABLE: u32 = 0x0046_0001;

fn nqn(name: &str) -> Nqn {
    Nqn::new(&format!("nqn.2026-11.example:{name}")).expect("a name")
}

fn drive() -> Stack {
    let settings = ["nand.data=ram", "drive.blocks=24", "drive.logical_pages=64"].map(String::from);
    let config = Registry::DRIVES.load("tiny", None, &settings).expect("these settings are valid");
    config.build_stack(Seed(1)).expect("the drive is small")
}

/// A subsystem, its media, and the commands that the media have not carried out.
struct Target {
    subsystem: Subsystem,
    drive: Drive,
    waiting: VecDeque<(IoCommand, Vec<u8>)>,
}

impl Target {
    fn connect(&mut self, host: u8, queue: QueueId, controller: ControllerId) -> Option<Place> {
        let connect = Connect {
            queue,
            entries: 8,
            deletes_queues: false,
            without_flow_control: false,
            keep_alive: 5000,
            host_id: [host; 16],
            controller,
            subsystem: nqn("drive"),
            host: nqn(["a", "b"][usize::from(host & 1)]),
        };
        let (entry, data) = connect.write(CommandId(1));
        self.subsystem.connect(&entry, &data).ok().map(|connected| connected.place)
    }

    fn begin(&mut self, place: Place, entry: &Entry, data: &[u8]) {
        let wanted = match self.subsystem.wants(place, entry) {
            Ok(bytes) => bytes as usize,
            Err(refused) => return assert_eq!(refused.id, entry.id()),
        };
        let data: Vec<u8> = data.iter().copied().cycle().take(wanted).collect();
        let mut out = Vec::new();
        match self.subsystem.begin(place, entry, &data, &mut out) {
            Step::Done(completion) => assert_eq!(completion.id, entry.id()),
            Step::Io(command) => self.waiting.push_back((command, data)),
            Step::Held => {}
        }
    }

    /// Lets the media carry out one command.
    fn carry_out(&mut self) {
        let Some((command, data)) = self.waiting.pop_front() else { return };
        let mut out = Vec::new();
        let result = command.carry_out(&mut self.drive, &data, &mut out);
        let finished = self.subsystem.finish(result, &mut out);
        let released = finished.released.into_iter().map(|command| (command, Vec::new()));
        self.waiting.extend(released);
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let identity = Identity {
        serial: "SN".into(),
        model: "FlashAtlas drive".into(),
        firmware: "1".into(),
        nqn: nqn("drive"),
        namespace: NamespaceNames::default(),
    };
    let drive = drive();
    let durable = Durable::new(identity).expect("an identity");
    let subsystem = Subsystem::new(Settings::default(), shape(&drive), durable);
    let mut target = Target { subsystem, drive: Drive::new(drive, 1), waiting: VecDeque::new() };
    let mut places = Vec::new();
    for host in [0, 1] {
        let admin = target.connect(host, QueueId::ADMIN, ControllerId::DYNAMIC);
        let admin = admin.expect("the controller is free");
        let enable = Entry::property_set(CommandId(2), offset::CONFIGURATION, ENABLE);
        target.begin(admin, &enable, &[]);
        places.push(admin);
        places.extend(target.connect(host, QueueId(1), admin.controller));
    }
    for step in data.chunks_exact(20) {
        let place = places[usize::from(step[0]) % places.len()];
        let mut bytes = [0; 64];
        (bytes[0], bytes[1], bytes[2], bytes[3]) = (step[1], step[2], step[3], 0);
        (bytes[4], bytes[39]) = (step[4], [0x5a, 0x01, 0x00, 0x5a][usize::from(step[5] & 3)]);
        bytes[34] = step[5] >> 2;
        bytes[33] = step[6];
        bytes[40..52].copy_from_slice(&step[7..19]);
        match step[19] & 7 {
            0 => target.carry_out(),
            1 => drop(target.subsystem.take_completions(place.controller)),
            2 => drop(target.subsystem.durable_changed()),
            3 if step[1] == 0 => {
                let _ = target.subsystem.lost(place);
            }
            4 => {
                let host = step[0] & 1;
                let found = target.connect(host, QueueId(u16::from(step[1] & 3)), place.controller);
                places.extend(found.filter(|_| places.len() < 8));
            }
            5 => bytes[0] = fabrics::OPCODE,
            _ => {}
        }
        target.begin(place, &Entry(bytes), &step[7..]);
    }
    while !target.waiting.is_empty() {
        target.carry_out();
    }
});
