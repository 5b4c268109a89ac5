//! The options of fio by class: honoured, refused, or without influence.

use super::definitions::MODELLED;
use super::left_out::LEFT_OUT;
use super::refused::REFUSED;
use std::fmt::Write as _;

/// Treatment of an option of fio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionClass {
    /// The option is simulated.
    Honoured,
    /// The option is an error, except with a value that changes nothing.
    Refused {
        /// Text of the error: what would change, and what to write instead.
        instead: &'static str,
        /// Values with which fio does the same as without the option.
        harmless: &'static [&'static str],
    },
    /// The option is left out, because it does not influence which requests reach the drive, in
    /// what order, when, and how many at the same time.
    LeftOut {
        /// The reason.
        why: &'static str,
    },
}

/// An option of fio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownOption {
    /// Name or alias of the option.
    pub name: &'static str,
    /// First version of fio with the option; empty if version 3.33 has the option.
    pub since: &'static str,
    /// Class of the option.
    pub class: OptionClass,
}

/// Returns all names of options, aliases included, with their classes.
pub fn known_options() -> impl Iterator<Item = KnownOption> {
    let honoured = MODELLED.iter().flat_map(|def| {
        let names = [def.name, def.alias].into_iter().filter(|name| !name.is_empty());
        names.map(|name| KnownOption { name, since: def.since(), class: OptionClass::Honoured })
    });
    let refused = REFUSED.iter().flat_map(|r| {
        let class = OptionClass::Refused { instead: r.instead, harmless: r.harmless };
        r.names.iter().map(move |name| KnownOption { name, since: r.since, class })
    });
    let left_out = LEFT_OUT.iter().flat_map(|group| {
        let class = OptionClass::LeftOut { why: group.why };
        let now = group.names.iter().map(|&name| (name, ""));
        now.chain(group.later.iter().copied()).map(move |(name, since)| KnownOption {
            name,
            since,
            class,
        })
    });
    honoured.chain(refused).chain(left_out)
}

/// Returns a Markdown table of each class. `docs/howto/run-a-fio-job.md` contains these tables.
pub fn options_table() -> String {
    let mut text = String::from("| Honoured |\n|---|\n| ");
    let dated = |name: &str, since: &str| match since {
        "" => format!("`{name}`"),
        since => format!("`{name}` (since {since})"),
    };
    let honoured: Vec<String> = MODELLED
        .iter()
        .map(|def| match def.alias {
            "" => dated(def.name, def.since()),
            alias => format!("{} = `{alias}`", dated(def.name, def.since())),
        })
        .collect();
    text += &honoured.join(", ");
    text += " |\n\n| Refused | Unless | Why, and what to do instead |\n|---|---|---|\n";
    for r in REFUSED {
        let names: Vec<String> = r.names.iter().map(|name| dated(name, r.since)).collect();
        let harmless: Vec<String> = r.harmless.iter().map(|value| format!("`{value}`")).collect();
        let (names, harmless) = (names.join(", "), harmless.join(", "));
        writeln!(text, "| {names} | {harmless} | {} |", r.instead).expect("a string takes it");
    }
    text += "\n| Without influence | Why |\n|---|---|\n";
    for group in LEFT_OUT {
        let now = group.names.iter().map(|name| dated(name, ""));
        let names: Vec<String> =
            now.chain(group.later.iter().map(|(name, since)| dated(name, since))).collect();
        writeln!(text, "| {} | {} |", names.join(", "), group.why).expect("a string takes it");
    }
    text
}
