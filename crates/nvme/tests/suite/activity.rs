//! The activity of hosts, for the record of a server.

use crate::Rig;
use flashatlas_nvme::support::Kind;
use flashatlas_nvme::{Nqn, Status, io};

#[test]
fn hosts_and_commands_are_counted_by_name() {
    let mut rig = Rig::new();
    let (admin, queue) = rig.ready("a");
    rig.ready("b");
    rig.ready("a");
    for _ in 0..3 {
        let read = rig.io(io::READ, 0, 8, 4096);
        assert_eq!(rig.status(queue, read, &[]), Status::SUCCESS);
    }
    let beyond = rig.io(io::WRITE, 1024, 1, 512);
    assert_eq!(rig.status(queue, beyond, &[0; 512]), Status::LBA_OUT_OF_RANGE);
    let nameless = rig.admin(0xC7);
    assert_eq!(rig.status(admin, nameless, &[]), Status::INVALID_OPCODE);
    let activity = rig.subsystem.activity();
    let hosts: Vec<&str> = activity.hosts.iter().map(Nqn::as_str).collect();
    assert_eq!((hosts.len(), activity.associations), (2, 3));
    let counted = |kind| activity.commands(kind).collect::<Vec<_>>();
    assert_eq!(counted(Kind::Io), [("Write".to_owned(), 1), ("Read".to_owned(), 3)]);
    assert_eq!(counted(Kind::Admin), [("C7h".to_owned(), 1)]);
    // each host enables its controller, and looks whether it is ready
    let fabrics = [("Property Set".to_owned(), 3), ("Property Get".to_owned(), 3)];
    assert_eq!(counted(Kind::Fabrics), fabrics);
}
