//! The controller by the book: fields at their offsets, each status, the life of a controller, and
//! its promises to hosts beside a model.

mod activity;
mod connecting;
mod document;
mod durable;
mod entries;
mod events;
mod features;
mod identify;
mod life;
mod logs;
mod model;
mod nvm;
mod ram;
mod random;
mod sharing;
mod switching;

use flashatlas_nvme::{
    CommandId, Completion, Connect, Connected, ControllerId, Durable, Entry, Identity, IoCommand,
    MediaShape, NamespaceId, NamespaceNames, Nqn, Place, QueueId, Settings, Status, Step,
    Subsystem, admin, offset,
};
use ram::Ram;

/// Configuration that Linux writes: enabled, entries of 64 and 16 bytes.
const ENABLE: u32 = 0x0046_0001;
/// The only namespace.
const ONE: NamespaceId = NamespaceId(1);

fn nqn(name: &str) -> Nqn {
    Nqn::new(&format!("nqn.2026-11.example:{name}")).expect("a name")
}

fn identity() -> Identity {
    Identity {
        serial: "SN42".into(),
        model: "FlashAtlas drive".into(),
        firmware: "0.1".into(),
        nqn: nqn("drive"),
        namespace: NamespaceNames { eui64: *b"\x02EUI64!!", nguid: *b"\x04NGUID-16-bytes!" },
    }
}

fn new_durable() -> Durable {
    Durable::new(identity()).expect("an identity")
}

/// A host with its connection to a controller, and the media behind it.
struct Rig {
    subsystem: Subsystem,
    ram: Ram,
    last: u16,
}

/// 1,024 blocks of 512 bytes in units of 8, with a volatile cache and trims that survive.
const SHAPE: MediaShape = MediaShape {
    blocks: 1024,
    block_bytes: 512,
    unit_blocks: 8,
    trims_survive: true,
    volatile_cache: true,
};

impl Rig {
    fn new() -> Rig {
        Rig::on(SHAPE)
    }

    fn on(shape: MediaShape) -> Rig {
        Rig::with(Settings::default(), Ram::new(shape), new_durable())
    }

    fn with(settings: Settings, ram: Ram, durable: Durable) -> Rig {
        let subsystem = Subsystem::new(settings, ram.shape, durable);
        Rig { subsystem, ram, last: 0 }
    }

    /// Returns an identifier that no command in flight has.
    fn id(&mut self) -> CommandId {
        self.last = (self.last + 1) % 0xFFFF;
        CommandId(self.last)
    }

    fn try_connect(&mut self, connect: &Connect) -> Result<Connected, Completion> {
        let (entry, data) = connect.write(self.id());
        self.subsystem.connect(&entry, &data)
    }

    /// Connects the admin queue of a host.
    fn connect(&mut self, host: &str) -> Place {
        self.try_connect(&asks(host, QueueId::ADMIN, ControllerId::DYNAMIC))
            .expect("it is free")
            .place
    }

    /// Connects a host, enables its controller and makes one I/O queue.
    fn ready(&mut self, host: &str) -> (Place, Place) {
        let admin = self.connect(host);
        self.set_property(admin, ENABLE);
        assert_eq!(self.property(admin, offset::STATUS) & 1, 1, "ready");
        let io = self.try_connect(&asks(host, QueueId(1), admin.controller)).expect("a queue");
        (admin, io.place)
    }

    fn begin(&mut self, place: Place, entry: &Entry, data: &[u8]) -> (Step, Vec<u8>) {
        let mut out = Vec::new();
        (self.subsystem.begin(place, entry, data, &mut out), out)
    }

    /// Carries out a command on the media.
    fn carry_out(
        &mut self,
        command: &IoCommand,
        data: &[u8],
    ) -> Option<(Place, Completion, Vec<u8>)> {
        let mut out = Vec::new();
        let result = command.carry_out(&mut self.ram, data, &mut out);
        let mut finished = self.subsystem.finish(result, &mut out);
        for released in finished.released.drain(..) {
            self.ram.released.push(released);
        }
        finished.completion.map(|(place, completion)| (place, completion, out))
    }

    /// Submits a command and waits for it.
    fn run(&mut self, place: Place, entry: Entry, data: &[u8]) -> (Completion, Vec<u8>) {
        let (step, out) = self.begin(place, &entry, data);
        match step {
            Step::Done(completion) => (completion, out),
            Step::Io(command) => {
                let (at, completion, out) =
                    self.carry_out(&command, data).expect("the host waits for the command");
                assert_eq!(at, place);
                (completion, out)
            }
            Step::Held => panic!("{entry:?} waits"),
        }
    }

    fn status(&mut self, place: Place, entry: Entry, data: &[u8]) -> Status {
        let (completion, out) = self.run(place, entry, data);
        assert_eq!(completion.id, entry.id());
        assert!(completion.status.is_success() || out.is_empty(), "data of a refused command");
        // the error log has an entry for every refused command except Fabrics commands
        Status { more: false, ..completion.status }
    }

    fn property(&mut self, place: Place, offset: u32) -> u64 {
        let entry = Entry::property_get(self.id(), offset, offset == 0);
        let (completion, _) = self.run(place, entry, &[]);
        assert_eq!(completion.status, Status::SUCCESS);
        completion.result
    }

    fn set_property(&mut self, place: Place, value: u32) {
        let entry = Entry::property_set(self.id(), offset::CONFIGURATION, value);
        assert_eq!(self.status(place, entry, &[]), Status::SUCCESS);
    }

    fn admin(&mut self, opcode: u8) -> Entry {
        Entry::new(opcode, self.id())
    }

    /// Makes an I/O command for a range of blocks with data of this many bytes.
    fn io(&mut self, opcode: u8, first: u64, blocks: u32, bytes: u32) -> Entry {
        let entry = Entry::new(opcode, self.id())
            .namespace(ONE)
            .dword(10, first as u32)
            .dword(11, (first >> 32) as u32)
            .dword(12, blocks - 1);
        if bytes > 0 { entry.transport_data(bytes) } else { entry }
    }

    fn identify(&mut self, place: Place, cns: u32, nsid: NamespaceId) -> Result<Vec<u8>, Status> {
        let entry = self.admin(admin::IDENTIFY);
        let entry = entry.transport_data(4096).namespace(nsid).dword(10, cns);
        let (completion, out) = self.run(place, entry, &[]);
        let status = Status { more: false, ..completion.status };
        if status.is_success() { Ok(out) } else { Err(status) }
    }

    fn log(&mut self, place: Place, log: u8, bytes: u32) -> Vec<u8> {
        let entry = self.get_log(log, bytes);
        let (completion, out) = self.run(place, entry, &[]);
        assert_eq!(completion.status, Status::SUCCESS, "log {log:02x}h");
        assert_eq!(out.len(), bytes as usize);
        out
    }

    fn get_log(&mut self, log: u8, bytes: u32) -> Entry {
        let dwords = bytes / 4 - 1;
        self.admin(admin::GET_LOG_PAGE)
            .transport_data(bytes)
            .dword(10, u32::from(log) | dwords << 16)
            .dword(11, dwords >> 16)
    }

    fn set_feature(&mut self, place: Place, feature: u8, value: u32) -> Status {
        let entry = self.admin(admin::SET_FEATURES).dword(10, feature.into()).dword(11, value);
        self.status(place, entry, &[])
    }

    fn feature(&mut self, place: Place, feature: u8, select: u32) -> u64 {
        let entry = self.admin(admin::GET_FEATURES).dword(10, u32::from(feature) | select << 8);
        let (completion, _) = self.run(place, entry, &[]);
        assert_eq!(completion.status, Status::SUCCESS, "feature {feature:02x}h");
        completion.result
    }
}

/// Returns a Connect command of a host.
fn asks(host: &str, queue: QueueId, controller: ControllerId) -> Connect {
    let mut host_id = [0; 16];
    host_id[..host.len()].copy_from_slice(host.as_bytes());
    Connect {
        queue,
        entries: 32,
        deletes_queues: false,
        without_flow_control: false,
        keep_alive: 5000,
        host_id,
        controller,
        subsystem: nqn("drive"),
        host: nqn(host),
    }
}

fn u16_at(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([page[at], page[at + 1]])
}

fn u32_at(page: &[u8], at: usize) -> u32 {
    u32::from(u16_at(page, at)) | u32::from(u16_at(page, at + 2)) << 16
}

fn u64_at(page: &[u8], at: usize) -> u64 {
    u64::from(u32_at(page, at)) | u64::from(u32_at(page, at + 4)) << 32
}
