//! Commands, responses and notices of HPB: any bytes are either refused, or the decoded message is
//! encoded to the same bytes.
#![no_main]

use flashatlas_host::wire::{jedec, paper, samsung};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(read) = paper::Read16::decode(data) {
        assert_eq!(read.encode(), data);
    }
    if let Ok(response) = paper::Response::decode(data) {
        let mut bytes = vec![0; response.length()];
        response.encode(&mut bytes).expect("as long as it is");
        assert_eq!(bytes, data);
    }
    if let Ok(read) = samsung::Read16::decode(data) {
        assert_eq!(read.encode(), data);
    }
    if let Ok(ask) = jedec::ReadBuffer::decode(data) {
        assert_eq!(ask.encode(), data);
    }
    if let Ok(read) = jedec::HpbRead::decode(data) {
        assert_eq!(read.encode(), data);
    }
    if let Ok(back) = jedec::WriteBuffer::decode(data) {
        assert_eq!(back.encode(), data);
    }
    if let Ok(notice) = jedec::Notice::decode(data) {
        assert_eq!(notice.encode(), data);
    }
});
