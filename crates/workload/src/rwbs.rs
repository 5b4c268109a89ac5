//! Operation flags of the Linux block layer (`WSM`, `FWFS`, `D` …), and the choice among the events
//! of a request.

use crate::raw::Fault;
use crate::text::Field;
use flashatlas_types::{HostOp, Param, Params, Text};

/// Meaning of the flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flags {
    /// Operation; `None` for any other command, such as a command passed through to the device.
    pub op: Option<HostOp>,
    pub fua: bool,
    pub preflush: bool,
    /// `true` for a command to a zone.
    pub zone: bool,
}

const FLAGS: &str = "flags such as R, WS, FWFSM, D, FF, ZA or N";

/// Decodes flags as blkparse and the kernel's tracepoints print them.
///
/// An `F` in front asks for a flush before the request. Then the operation follows: `R`, `W`, `D`
/// (discard; `DE`: secure erase), `F` (flush) or `N` (none of these). An `F` behind the operation
/// forces unit access; `A`, `S`, `M` and `U` change nothing.
///
/// Commands to zones: `ZA` (append) is a write, and its event names the sector. `ZR` (reset) is a
/// trim if the event has a length. `ZRA`, `ZO`, `ZC` and `ZF` (reset all, open, close, finish)
/// carry no data.
pub(crate) fn flags(field: Field<'_>) -> Result<Flags, Fault> {
    parse(field.text).ok_or_else(|| field.fault("unknown operation flags", FLAGS))
}

fn parse(text: &[u8]) -> Option<Flags> {
    let (preflush, command) = match text {
        [b'F', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (op, rest) = match command {
        [b'R', rest @ ..] => (Some(HostOp::Read), rest),
        [b'W', rest @ ..] => (Some(HostOp::Write), rest),
        // a reset of all zones has no address, and a change of a zone's state moves no data
        [b'Z', b'R', b'A', rest @ ..] | [b'Z', b'O' | b'C' | b'F', rest @ ..] => (None, rest),
        [b'Z', b'A', rest @ ..] => (Some(HostOp::Write), rest),
        [b'Z', b'R', rest @ ..] => (Some(HostOp::Trim), rest),
        [b'D', b'E', rest @ ..] | [b'D', rest @ ..] => (Some(HostOp::Trim), rest),
        // a flush without a request: the kernel prints FF, or F without a second letter; blkparse
        // prints FN
        [b'F' | b'N', rest @ ..] if preflush => (Some(HostOp::Flush), rest),
        [] if preflush => (Some(HostOp::Flush), command),
        [b'N', rest @ ..] => (None, rest),
        _ => return None,
    };
    let known = rest.iter().all(|flag| b"FASMU".contains(flag));
    let flush = op == Some(HostOp::Flush);
    let fua = !flush && rest.contains(&b'F');
    known.then(|| Flags { op, fua, preflush: preflush && !flush, zone: command.starts_with(b"Z") })
}

/// An event in the life of a request. A reader takes one kind of event, so that each request counts
/// once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Issued,
    Completed,
    Queued,
}

/// Parameter that chooses the event.
pub(crate) const ACTION: Param<Text> = Param::choice(
    "action",
    &["auto", "D", "C", "Q"],
    "the event that counts as the request: D (issued to the drive), C (completed) or Q (queued); \
     `auto` is the first of D, C and Q that occurs in the first 64 KiB",
)
.or("auto");

/// Actions in the order of preference: the command given to the drive, else its completion, else
/// its submission by the host.
const PREFERENCE: [Action; 3] = [Action::Issued, Action::Completed, Action::Queued];

impl Action {
    /// Returns the action called `text`, or `None` if there is none.
    pub fn named(text: &[u8]) -> Option<Action> {
        match text {
            b"D" => Some(Action::Issued),
            b"C" => Some(Action::Completed),
            b"Q" => Some(Action::Queued),
            _ => None,
        }
    }

    /// Returns the action that `params` names, else the preferred action among the occurring
    /// actions, else D.
    pub fn chosen(params: &Params, occurring: impl Iterator<Item = Action>) -> Action {
        if let Some(action) = Action::named(params.get(ACTION).as_bytes()) {
            return action;
        }
        let mut seen = [false; PREFERENCE.len()];
        occurring.for_each(|action| seen[action as usize] = true);
        PREFERENCE.into_iter().find(|&action| seen[action as usize]).unwrap_or(Action::Issued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_block_layer() {
        let of = |text: &str| parse(text.as_bytes()).map(|f| (f.op, f.fua, f.preflush));
        for (text, op, fua, preflush) in [
            ("R", HostOp::Read, false, false),
            ("RAM", HostOp::Read, false, false),
            ("WFS", HostOp::Write, true, false),
            ("FWS", HostOp::Write, false, true),
            ("FWFSM", HostOp::Write, true, true),
            ("D", HostOp::Trim, false, false),
            ("DE", HostOp::Trim, false, false),
            ("DS", HostOp::Trim, false, false),
            ("F", HostOp::Flush, false, false),
            ("FF", HostOp::Flush, false, false),
            ("FN", HostOp::Flush, false, false),
            ("FFS", HostOp::Flush, false, false),
            ("FNF", HostOp::Flush, false, false),
            ("ZA", HostOp::Write, false, false),
            ("ZAS", HostOp::Write, false, false),
            ("FZAF", HostOp::Write, true, true),
            ("ZR", HostOp::Trim, false, false),
            ("ZRS", HostOp::Trim, false, false),
        ] {
            assert_eq!(of(text), Some((Some(op), fua, preflush)), "{text}");
        }
        assert_eq!(of("N"), Some((None, false, false)));
        assert_eq!(["ZRA", "ZRAS", "ZO", "ZC", "ZF"].map(of), [Some((None, false, false)); 5]);
        assert_eq!(["", "X", "WX", "S", "RR", "Z", "ZX"].map(of), [None; 7]);
    }
}
