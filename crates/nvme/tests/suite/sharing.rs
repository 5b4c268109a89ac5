//! Several hosts and threads on one subsystem: the lock is free while the media work.

use crate::ram::Ram;
use crate::{ENABLE, Rig, SHAPE, asks, new_durable};
use flashatlas_nvme::{
    CommandId, Entry, IoCommand, IoResult, Media, MediaError, QueueId, Settings, Status, Step,
    Subsystem, io, offset,
};
use std::sync::{Barrier, Mutex};

#[test]
fn a_host_reads_what_another_wrote() {
    let mut rig = Rig::new();
    let (_, first) = rig.ready("a");
    let (_, second) = rig.ready("b");
    let write = rig.io(io::WRITE, 5, 1, 512);
    assert_eq!(rig.status(first, write, &[7; 512]), Status::SUCCESS);
    let read = rig.io(io::READ, 5, 1, 512);
    assert_eq!(rig.run(second, read, &[]).1, [7; 512]);
}

#[test]
fn a_host_does_not_feel_the_reset_of_another() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let (_, other) = rig.ready("b");
    let read = rig.io(io::READ, 0, 1, 512);
    let (step, _) = rig.begin(other, &read, &[]);
    let Step::Io(command) = step else { panic!("{step:?}") };
    rig.set_property(admin, 0);
    rig.subsystem.lost(admin);
    assert_eq!(rig.subsystem.queue_entries(io), None);
    assert_eq!(rig.carry_out(&command, &[]).unwrap().1.status, Status::SUCCESS);
}

/// Media that threads share. Each write waits until `hosts` writes wait, so a lock around the
/// subsystem would never be released.
struct Shared {
    ram: Mutex<Ram>,
    together: Barrier,
}

impl Media for &Shared {
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), MediaError> {
        self.ram.lock().unwrap().read(offset, out)
    }

    fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), MediaError> {
        self.together.wait();
        self.ram.lock().unwrap().write(offset, data, fua)
    }

    fn trim(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        self.ram.lock().unwrap().trim(offset, bytes)
    }

    fn flush(&mut self) -> Result<(), MediaError> {
        self.ram.lock().unwrap().flush()
    }
}

const HOSTS: usize = 4;

fn host(subsystem: &Mutex<Subsystem>, mut media: &Shared, number: usize) {
    let name = ["a", "b", "c", "d"][number];
    let dynamic = flashatlas_nvme::ControllerId::DYNAMIC;
    let (entry, data) = asks(name, QueueId::ADMIN, dynamic).write(CommandId(1));
    let admin = subsystem.lock().unwrap().connect(&entry, &data).unwrap().place;
    let enable = Entry::property_set(CommandId(2), offset::CONFIGURATION, ENABLE);
    let step = subsystem.lock().unwrap().begin(admin, &enable, &[], &mut Vec::new());
    assert!(matches!(step, Step::Done(done) if done.status.is_success()));
    let (entry, data) = asks(name, QueueId(1), admin.controller).write(CommandId(3));
    let place = subsystem.lock().unwrap().connect(&entry, &data).unwrap().place;
    let first = number as u32 * 8;
    for round in 0..50 {
        for opcode in [io::WRITE, io::READ] {
            let entry = Entry::new(opcode, CommandId(round))
                .namespace(crate::ONE)
                .transport_data(4096)
                .dword(10, first)
                .dword(12, 7);
            let data = [round as u8 + number as u8; 4096];
            let mut out = Vec::new();
            let step = subsystem.lock().unwrap().begin(place, &entry, &data, &mut out);
            let Step::Io(command) = step else { panic!("{step:?}") };
            let result = command.carry_out(&mut media, &data, &mut out);
            let finished = subsystem.lock().unwrap().finish(result, &mut out);
            let (at, completion) = finished.completion.expect("the host waits for the command");
            assert_eq!((at, completion.status), (place, Status::SUCCESS));
            assert!(opcode == io::WRITE || out == data);
        }
    }
}

#[test]
fn hosts_on_threads_wait_for_the_media_and_not_for_each_other() {
    let subsystem = Mutex::new(Subsystem::new(Settings::default(), SHAPE, new_durable()));
    let ram = Mutex::new(Ram::new(SHAPE));
    let media = Shared { ram, together: Barrier::new(HOSTS) };
    std::thread::scope(|scope| {
        for number in 0..HOSTS {
            let (subsystem, media) = (&subsystem, &media);
            scope.spawn(move || host(subsystem, media, number));
        }
    });
    let subsystem = subsystem.into_inner().unwrap();
    assert_eq!(subsystem.controllers().count(), HOSTS);
}

#[test]
fn commands_and_results_go_from_thread_to_thread() {
    fn goes<T: Send + Sync>() {}
    goes::<IoCommand>();
    goes::<IoResult>();
    goes::<Subsystem>();
}
