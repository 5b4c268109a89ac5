//! The commands of a study as a table. See `docs/FORMATS.md`.

use crate::{Column, Table};
use flashatlas_dram::{Command, CommandKind, Device};

/// Names of the commands in JEDEC's standards, in the order of [`CommandKind`].
const NAMES: [&str; 6] = ["ACT", "PRE", "RD", "WR", "PREA", "REF"];

/// Value in place of a bank or a row that a command does not name.
const NONE: i64 = -1;

/// Returns the table of commands, in order.
pub(super) fn table(commands: &[Command], device: &Device) -> Table {
    let int = |of: &dyn Fn(&Command) -> i64| Column::Int(commands.iter().map(of).collect());
    let of_bank = |c: &Command, value: u32| match c.what {
        CommandKind::PrechargeAll | CommandKind::Refresh => NONE,
        _ => i64::from(value),
    };
    let row = |c: &Command| match c.what {
        CommandKind::Activate | CommandKind::Read | CommandKind::Write => i64::from(c.row),
        _ => NONE,
    };
    let codes = commands.iter().map(|c| c.what as u8).collect();
    let mut table = Table::new("commands");
    table.add("clock", int(&|c| c.at));
    table.add("command", Column::Words { of: NAMES.to_vec(), codes });
    table.add("group", int(&|c| of_bank(c, device.group_of(c.bank.into()))));
    table.add("bank", int(&|c| of_bank(c, c.bank.into())));
    table.add("row", int(&row));
    table
}
