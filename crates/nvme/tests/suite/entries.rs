//! Commands, completions and status as bytes.

use flashatlas_nvme::{CommandId, Completion, Entry, NamespaceId, Status};

#[test]
fn the_fields_of_a_command_are_where_the_book_has_them() {
    let mut bytes = [0; 64];
    bytes[0] = 0x02; // Get Log Page
    bytes[1] = 0b0100_0001; // one descriptor, first command of a fused pair
    bytes[2..4].copy_from_slice(&[0x34, 0x12]);
    bytes[4..8].copy_from_slice(&[1, 0, 0, 0x80]);
    bytes[32..36].copy_from_slice(&[0, 0x10, 0, 0]);
    bytes[39] = 0x5A;
    bytes[40..44].copy_from_slice(&[0x78, 0x56, 0x34, 0x12]); // dword 10
    bytes[44..48].copy_from_slice(&[1, 0, 0, 0]); // dword 11
    bytes[48..52].copy_from_slice(&[7, 0, 0xFF, 0xFF]); // dword 12
    bytes[60..].copy_from_slice(&[4, 3, 2, 1]); // dword 15
    let entry = Entry(bytes);
    assert_eq!((entry.opcode(), entry.fuse(), entry.data_pointer_kind()), (2, 1, 1));
    assert_eq!((entry.id(), entry.nsid()), (CommandId(0x1234), NamespaceId(0x8000_0001)));
    assert_eq!((entry.sgl().kind, entry.sgl().length), (0x5A, 4096));
    assert_eq!((entry.at(10), entry.at(15)), (0x1234_5678, 0x0102_0304));
    assert_eq!((entry.first_block(), entry.blocks()), (0x1_1234_5678, 8));
}

#[test]
fn a_completion_is_sixteen_bytes() {
    let completion = Completion {
        id: CommandId(0xBEEF),
        result: 0x8877_6655_4433_2211,
        status: Status::LBA_OUT_OF_RANGE.with_more(),
    };
    // LBA Out of Range is 80h of the generic status, above the phase tag; More is bit 14 and Do Not
    // Retry is bit 15 of the last word
    assert_eq!(
        completion.to_bytes(0x0102),
        [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 2, 1, 0, 0, 0xEF, 0xBE, 0x00, 0xC1]
    );
}

#[test]
fn a_status_is_the_same_from_its_bits() {
    for status in [
        Status::SUCCESS,
        Status::INVALID_FIELD,
        Status::SEQUENCE_ERROR,
        Status::CONNECT_INVALID,
        Status::UNRECOVERED_READ.with_more(),
    ] {
        assert_eq!(Status::from_bits(status.to_bits()), status);
    }
    // Unrecovered Read Error: code type 2, code 81h, do not retry
    assert_eq!(Status::UNRECOVERED_READ.to_bits(), 0x8502);
    assert_eq!(Status::SEQUENCE_ERROR.to_bits(), 0x0018);
    assert_eq!(Status::CONNECT_INVALID.to_bits(), 0x8304);
}
