//! Parts of a trace.

use crate::common::*;
use flashatlas_types::HostOp::Write;
use flashatlas_types::{Ps, Seed};
use flashatlas_workload::{Bounds, Opened, ReadOptions, RecordSource, Slice, generate, open};
use std::io::Cursor;

const TEXT: &str = "0,0,512,w,0\n0,1,512,w,1\n0,2,512,w,3\n0,3,512,w,2\n0,4,512,w,4\n0,5,512,w,5\n";

/// Returns sectors and seconds of the records within `bounds`, or the error.
fn slice(bounds: Bounds) -> Result<Vec<(u64, u64)>, String> {
    let Opened { source, .. } =
        open(Box::new(Cursor::new(TEXT)), None, &ReadOptions::default()).unwrap();
    let (records, error) = drain(&mut Slice::new(source, bounds));
    assert!(records.iter().all(|r| r.request.op == Write));
    error.map_or(Ok(records.iter().map(|r| (r.request.lba.0, r.request.at.0 / S)).collect()), Err)
}

#[test]
fn by_time_and_by_number() {
    let all = Bounds::default();
    assert_eq!(slice(all).unwrap(), [(0, 0), (1, 1), (2, 3), (3, 2), (4, 4), (5, 5)]);
    // times count from the first record of the slice. Record 3 has an earlier time than record 2,
    // so its time becomes 0
    assert_eq!(slice(Bounds { from: Ps(2 * S), ..all }).unwrap(), [(2, 0), (3, 0), (4, 1), (5, 2)]);
    assert_eq!(
        slice(Bounds { from: Ps(2 * S), to: Some(Ps(4 * S)), ..all }).unwrap(),
        [(2, 0), (3, 0)]
    );
    assert_eq!(slice(Bounds { skip: 3, ..all }).unwrap(), [(3, 0), (4, 2), (5, 3)]);
    assert_eq!(slice(Bounds { skip: 1, count: Some(2), ..all }).unwrap(), [(1, 0), (2, 2)]);
    let both = Bounds { from: Ps(S), to: Some(Ps(5 * S)), skip: 1, count: Some(2) };
    assert_eq!(slice(both).unwrap(), [(2, 0), (3, 0)]);
}

#[test]
fn a_slice_without_requests_is_an_error() {
    let all = Bounds::default();
    for empty in [
        Bounds { from: Ps(6 * S), ..all },
        Bounds { to: Some(Ps(0)), ..all },
        Bounds { skip: 6, ..all },
        Bounds { count: Some(0), ..all },
    ] {
        let why = slice(empty).unwrap_err();
        let left_out = if empty.skip > 0 {
            "6 requests have times within the slice, but the first 6 are left out"
        } else {
            "no request of the trace has a"
        };
        assert!(why.contains(&format!(": the slice holds no request: {left_out}")), "{why}");
    }
}

#[test]
fn what_is_expected_follows_the_numbers() {
    let expected = |bounds| {
        Slice::new(generate("uniform:requests=100", 1 << 20, Seed(1)).unwrap(), bounds).expected()
    };
    let all = Bounds::default();
    assert_eq!(expected(all), Some(100));
    assert_eq!(expected(Bounds { skip: 30, count: Some(80), ..all }), Some(70));
    assert_eq!(expected(Bounds { skip: 200, ..all }), Some(0));
    assert_eq!(expected(Bounds { from: Ps(1), ..all }), None);
}
