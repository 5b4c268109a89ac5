//! Identify: fields at the offsets of the specification.

use crate::ram::Ram;
use crate::{ONE, Rig, SHAPE, new_durable, u16_at, u32_at, u64_at};
use flashatlas_nvme::{MediaShape, NamespaceId, Settings, Status, admin};

#[test]
fn the_controller_is_identified() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    let page = rig.identify(admin, 0x01, NamespaceId::NONE).unwrap();
    assert_eq!(page.len(), 4096);
    assert_eq!(&page[4..24], b"SN42                ");
    assert_eq!(&page[24..64], b"FlashAtlas drive                        ");
    assert_eq!(&page[64..72], b"0.1     ");
    assert_eq!(page[76], 2, "CMIC: several controllers");
    assert_eq!(page[77], 8, "MDTS: 1 MiB");
    assert_eq!(u16_at(&page, 78), admin.controller.0);
    assert_eq!(u32_at(&page, 80), 0x0002_0100, "VER: 2.1");
    assert_eq!(u32_at(&page, 92), 1 << 8, "OAES: namespace notices");
    assert_eq!(u32_at(&page, 96), 1 << 6 | 1, "CTRATT: traffic keeps alive, long identifiers");
    assert_eq!(page[111], 1, "CNTRLTYPE: I/O");
    assert_eq!(u16_at(&page, 256), 0, "OACS");
    assert_eq!((page[258], page[259], page[262]), (3, 3, 63), "ACL, AERL, ELPE");
    assert_eq!(page[261], 0b10_0110, "LPA: effects, extended data, miscellaneous logs");
    assert_eq!((u16_at(&page, 266), u16_at(&page, 268)), (343, 353), "70 and 80 °C");
    assert_eq!(u16_at(&page, 320), 1, "KAS: 100 ms");
    assert_eq!((page[512], page[513]), (0x66, 0x44), "SQES, CQES");
    assert_eq!(u16_at(&page, 514), 128, "MAXCMD");
    assert_eq!(u32_at(&page, 516), 1, "NN");
    // Compare, Dataset Management, Write Zeroes, Save and Select, Verify
    assert_eq!(u16_at(&page, 520), 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 7, "ONCS");
    assert_eq!(u16_at(&page, 522), 0, "FUSES");
    assert_eq!(page[525], 0b111, "VWC: there, and Flush takes all namespaces");
    assert_eq!((u16_at(&page, 526), u16_at(&page, 528), u16_at(&page, 532)), (0, 0, 0));
    assert_eq!(u32_at(&page, 536), 0x0034_0001, "SGLS");
    assert_eq!(&page[768..795], b"nqn.2026-11.example:drive\0\0");
    assert_eq!(u32_at(&page, 1792), (64 + 8192) / 16, "IOCCSZ");
    assert_eq!((u32_at(&page, 1796), page[1803]), (1, 1), "IORCSZ, MSDBD");
    assert_eq!(u16_at(&page, 1804), 1, "OFCS: Disconnect");
}

#[test]
fn the_namespace_is_identified() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    let page = rig.identify(admin, 0x00, ONE).unwrap();
    assert_eq!((u64_at(&page, 0), u64_at(&page, 8), u64_at(&page, 16)), (1024, 1024, 1024));
    assert_eq!(page[24], 0b1_0010, "NSFEAT: atomic boundaries, optimal sizes");
    assert_eq!((page[25], page[26]), (0, 0), "one format");
    assert_eq!(page[30], 1, "NMIC: shared");
    assert_eq!(page[33], 0b1001, "DLFEAT: zeros, DEAC");
    // one unit of 8 blocks, counted from 0
    for (at, name) in [(34, "NAWUN"), (36, "NAWUPF"), (40, "NABSN"), (44, "NABSPF"), (64, "NPWG")] {
        assert_eq!(u16_at(&page, at), 7, "{name}");
    }
    assert_eq!((u16_at(&page, 38), u16_at(&page, 42)), (0, 0), "NACWU, NABO");
    assert_eq!(u64_at(&page, 48), 1024 * 512, "NVMCAP");
    assert_eq!(&page[104..120], b"\x04NGUID-16-bytes!");
    assert_eq!(&page[120..128], b"\x02EUI64!!");
    assert_eq!(u32_at(&page, 128), 9 << 16, "LBAF0: 512 bytes, no metadata");
}

#[test]
fn what_media_do_not_promise_is_not_said() {
    let shape = MediaShape {
        block_bytes: 4096,
        unit_blocks: 1,
        trims_survive: false,
        volatile_cache: false,
        ..SHAPE
    };
    let mut rig = Rig::on(shape);
    let (admin, _) = rig.ready("a");
    let page = rig.identify(admin, 0x00, ONE).unwrap();
    assert_eq!((page[24], page[33], u16_at(&page, 36)), (0, 0, 0), "NSFEAT, DLFEAT, NAWUPF");
    assert_eq!(u32_at(&page, 128), 12 << 16, "4 KiB");
    let page = rig.identify(admin, 0x01, NamespaceId::NONE).unwrap();
    assert_eq!(page[525], 0b110, "VWC: not there");
    let page = rig.identify(admin, 0x08, ONE).unwrap();
    assert_eq!(page[0], 1 << 5, "no volatile write cache");
}

#[test]
fn the_other_data_structures_are_there() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    let active = rig.identify(admin, 0x02, NamespaceId::NONE).unwrap();
    assert_eq!((u32_at(&active, 0), u32_at(&active, 4)), (1, 0));
    assert_eq!(rig.identify(admin, 0x02, ONE).unwrap(), [0; 4096], "none above 1");
    assert_eq!(rig.identify(admin, 0x07, NamespaceId::NONE).unwrap(), active);
    let names = rig.identify(admin, 0x03, ONE).unwrap();
    assert_eq!(names[..12], *b"\x01\x08\0\0\x02EUI64!!");
    assert_eq!(names[12..32], *b"\x02\x10\0\0\x04NGUID-16-bytes!");
    assert_eq!(names[32..42], [4, 1, 0, 0, 0, 0, 0, 0, 0, 0], "CSI: NVM");
    assert_eq!(rig.identify(admin, 0x05, ONE).unwrap(), [0; 4096]);
    assert_eq!(rig.identify(admin, 0x06, NamespaceId::NONE).unwrap(), [0; 4096]);
    let independent = rig.identify(admin, 0x08, ONE).unwrap();
    assert_eq!((independent[0], independent[1], independent[14]), (0, 1, 1));
    let sets = rig.identify(admin, 0x1C, NamespaceId::NONE).unwrap();
    assert_eq!((u64_at(&sets, 0), u64_at(&sets, 8)), (1, 0));
}

#[test]
fn what_is_not_there_is_refused() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    for cns in [0x04, 0x09, 0x0B, 0x10, 0x13, 0x17, 0x1D, 0xFF] {
        let refused = rig.identify(admin, cns, NamespaceId::NONE);
        assert_eq!(refused, Err(Status::INVALID_FIELD), "CNS {cns:02x}h");
    }
    for cns in [0x00, 0x03, 0x05, 0x08] {
        for nsid in [NamespaceId::NONE, NamespaceId(2), NamespaceId::ALL] {
            assert_eq!(rig.identify(admin, cns, nsid), Err(Status::INVALID_NAMESPACE));
        }
    }
    for nsid in [NamespaceId::ALL, NamespaceId(0xFFFF_FFFE)] {
        assert_eq!(rig.identify(admin, 0x02, nsid), Err(Status::INVALID_NAMESPACE));
    }
    let zoned = rig.admin(admin::IDENTIFY).transport_data(4096).namespace(ONE);
    let zoned = zoned.dword(10, 0x05).dword(11, 2 << 24);
    assert_eq!(rig.status(admin, zoned, &[]), Status::INVALID_FIELD);
}

#[test]
fn settings_are_what_identify_says() {
    let settings = Settings {
        entries: 1024,
        capsule_data: 4096,
        transfer_pages_log2: 5,
        ..Settings::default()
    };
    let mut rig = Rig::with(settings, Ram::new(SHAPE), new_durable());
    let (admin, _) = rig.ready("a");
    let page = rig.identify(admin, 0x01, NamespaceId::NONE).unwrap();
    assert_eq!((page[77], u16_at(&page, 514)), (5, 1024));
    assert_eq!(u32_at(&page, 1792), 260);
    assert_eq!(rig.property(admin, 0) & 0xFFFF, 1023);
}
