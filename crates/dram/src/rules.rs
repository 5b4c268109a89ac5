//! Constraints that the paper leaves out. Each can be switched off. Without all of them, the
//! paper's model is left.

use flashatlas_types::ConfigError;

/// Constraints that can be switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// tRAS: from an activation to the precharge of its bank.
    pub ras: bool,
    /// tRRD: from an activation to the next activation of another bank.
    pub rrd: bool,
    /// tFAW: at most four activations in this time.
    pub faw: bool,
    /// tCCD_L: between bursts of one bank group. If this constraint is off, tCCD_S holds there,
    /// too.
    pub ccd_l: bool,
    /// A refresh every tREFI.
    pub refresh: bool,
    /// One command a clock on the command bus.
    pub command_bus: bool,
}

/// Name of a constraint, and the field that switches it.
type Switch = (&'static str, fn(&mut Rules) -> &mut bool);

const SWITCHES: [Switch; 6] = [
    ("ras", |r| &mut r.ras),
    ("rrd", |r| &mut r.rrd),
    ("faw", |r| &mut r.faw),
    ("ccd_l", |r| &mut r.ccd_l),
    ("refresh", |r| &mut r.refresh),
    ("command_bus", |r| &mut r.command_bus),
];

impl Rules {
    /// Every constraint, as on a real device.
    pub const ALL: Rules =
        Rules { ras: true, rrd: true, faw: true, ccd_l: true, refresh: true, command_bus: true };
    /// No constraint, so that only the paper's recurrence holds.
    pub const NONE: Rules = Rules {
        ras: false,
        rrd: false,
        faw: false,
        ccd_l: false,
        refresh: false,
        command_bus: false,
    };

    /// Parses the value of `dram.constraints`: `all`, `none`, or names separated by commas.
    ///
    /// # Errors
    /// Returns an error that names the unknown constraint and lists the known constraints.
    pub fn parse(text: &str) -> Result<Rules, ConfigError> {
        match text.trim() {
            "all" => return Ok(Rules::ALL),
            "none" => return Ok(Rules::NONE),
            _ => {}
        }
        let mut rules = Rules::NONE;
        for name in text.split(',').map(str::trim) {
            let Some((_, switch)) = SWITCHES.iter().find(|(known, _)| *known == name) else {
                let mut error = ConfigError::unknown(
                    "dram.constraints",
                    "constraint",
                    name,
                    &SWITCHES.map(|s| s.0),
                );
                error.allowed.extend(["all alone".to_owned(), "none alone".to_owned()]);
                return Err(error);
            };
            *switch(&mut rules) = true;
        }
        Ok(rules)
    }
}
