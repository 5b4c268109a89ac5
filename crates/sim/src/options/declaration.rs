//! Declaration of the options of a run.
//!
//! The module contains the fields of an option, the macro that makes the structs of a run from a
//! table of declarations, and functions for the values of options in a run.

use OptionKind::{Choice, Count, CountOr, Factor, File, Flag, Number, Text};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The type of an option.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum OptionKind {
    /// A path of a file.
    File,
    /// Text of its own syntax.
    Text,
    /// A whole number, at least this number.
    Count(u64),
    /// A whole number, or one or several of these words, separated by commas.
    CountOr(&'static [&'static str]),
    /// A whole number of either sign.
    Number,
    /// A number above 0.
    Factor,
    /// One of these words; in the words that end in `:FILE`, a path stands for `FILE`.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
}

impl OptionKind {
    /// Returns the word for the type that Python and the command line show.
    pub const fn name(self) -> &'static str {
        match self {
            File => "file",
            Text => "text",
            Count(_) => "count",
            CountOr(_) => "count-or",
            Number => "number",
            Factor => "factor",
            Choice(_) => "choice",
            Flag => "flag",
        }
    }
}

/// Subject of an option. It decides which commands accept the option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionGroup {
    /// Reading of a trace: the fields of [`Reading`](crate::Reading).
    Reading,
    /// The workload, and its placement on the drive.
    Workload,
    /// Playing and measuring; these options play no part in preconditioning.
    Playing,
}

impl OptionGroup {
    /// Returns the heading of the group.
    pub const fn title(self) -> &'static str {
        match self {
            OptionGroup::Reading => "Reading a trace",
            OptionGroup::Workload => "Workload",
            OptionGroup::Playing => "Playing and measuring",
        }
    }
}

/// Condition under which the `config` of a run record has an option, and the option's place there.
///
/// A record lists its options in the order of their places, and the digest of a configuration
/// depends on this order. So a new option must get the next free place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recorded {
    /// The option is no part of the configuration.
    Never,
    /// The configuration always contains the option.
    Always(u8),
    /// The configuration contains the option if its value is not the default.
    IfGiven(u8),
    /// The configuration contains the option in the mode `open`.
    InOpenMode(u8),
}

impl Recorded {
    /// Returns the place in the configuration, or `None` if the option has no place.
    pub const fn place(self) -> Option<u8> {
        match self {
            Recorded::Never => None,
            Recorded::Always(place) | Recorded::IfGiven(place) | Recorded::InOpenMode(place) => {
                Some(place)
            }
        }
    }
}

/// One option of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunOption {
    /// Name of the field; the command line writes `device_map` as `--device-map`.
    pub name: &'static str,
    /// Letter of the option on the command line.
    pub letter: Option<char>,
    /// Group of the option.
    pub group: OptionGroup,
    /// Type and range.
    pub kind: OptionKind,
    /// Largest count, if it is less than the largest number of 64 bits.
    pub most: Option<u64>,
    /// Returns the default as JSON; `null` means that the option is not given.
    pub default: fn() -> Value,
    /// Placeholder for the value in help texts; if empty, the word for the type is shown.
    pub metavar: &'static str,
    /// Meaning of the option.
    pub doc: &'static str,
    /// Condition under which the run record keeps the option.
    pub recorded: Recorded,
    /// Place among the options that a job file sets itself; `None` if a job file does not set the
    /// option.
    ///
    /// If several of these options are given beside a job file, the error names the first by place.
    pub by_job_file: Option<u8>,
}

/// Returns an option of type `kind`; the table fills in the other fields.
pub(crate) const fn option(kind: OptionKind) -> RunOption {
    RunOption {
        name: "",
        letter: None,
        group: OptionGroup::Playing,
        kind,
        most: None,
        default: || Value::Null,
        metavar: "",
        doc: "",
        recorded: Recorded::Never,
        by_job_file: None,
    }
}

impl RunOption {
    /// Sets the letter of the option on the command line.
    pub(crate) const fn letter(self, letter: char) -> RunOption {
        RunOption { letter: Some(letter), ..self }
    }

    /// Sets the largest count.
    pub(crate) const fn most(self, most: u32) -> RunOption {
        RunOption { most: Some(most as u64), ..self }
    }

    /// Sets the placeholder for the value in help texts.
    pub(crate) const fn metavar(self, metavar: &'static str) -> RunOption {
        RunOption { metavar, ..self }
    }

    /// Sets the condition under which the run record keeps the option.
    pub(crate) const fn recorded(self, recorded: Recorded) -> RunOption {
        RunOption { recorded, ..self }
    }

    /// Declares that a job file sets the option itself, with the option's place among such options.
    pub(crate) const fn by_job_file(self, place: u8) -> RunOption {
        RunOption { by_job_file: Some(place), ..self }
    }
}

/// Makes the structs of a run, their JSON and the list of all options from one table.
///
/// The table contains the name of the list, the struct of the group `Reading` with its rows, the
/// struct of the run with the fields that are not options, and the rows of the run's groups. Help
/// texts list the options in the order of the table. [`super`] describes a row.
macro_rules! options {
    (
        $(#[$list_doc:meta])*
        const $list:ident;

        $(#[$reading_doc:meta])*
        struct $reading:ident {
            $(
                $(#[doc = $read_doc:literal])+
                $read_name:ident: $read_type:ty = $read_default:expr => $read_option:expr;
            )*
        }

        $(#[$run_doc:meta])*
        struct $run:ident {
            $( $(#[$fixed_attribute:meta])* $fixed:ident: $fixed_type:ty; )*
        }

        $(
            group $group:ident {
                $(
                    $(#[doc = $doc:literal])+
                    $name:ident: $type:ty = $default:expr => $option:expr;
                )*
            }
        )*
    ) => {
        $(#[$reading_doc])*
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $reading {
            $( $(#[doc = $read_doc])+ pub $read_name: $read_type, )*
        }

        impl Default for $reading {
            fn default() -> $reading {
                $reading { $( $read_name: $read_default, )* }
            }
        }

        $(#[$run_doc])*
        #[derive(Clone, Debug, serde::Serialize)]
        pub struct $run {
            $( $(#[$fixed_attribute])* pub $fixed: $fixed_type, )*
            $($( $(#[doc = $doc])+ pub $name: $type, )*)*
        }

        impl<'de> serde::Deserialize<'de> for $run {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$run, D::Error> {
                /// The fields as they are in JSON; an option that is missing there is `None`.
                #[derive(serde::Deserialize)]
                #[serde(deny_unknown_fields, expecting = "the specification of a run")]
                struct Given {
                    $( $(#[$fixed_attribute])* $fixed: $fixed_type, )*
                    $($(
                        #[serde(
                            default,
                            deserialize_with = "crate::options::declaration::present"
                        )]
                        $name: Option<$type>,
                    )*)*
                }
                let given = Given::deserialize(from)?;
                Ok($run {
                    $( $fixed: given.$fixed, )*
                    $($( $name: given.$name.unwrap_or_else(|| $default), )*)*
                })
            }
        }

        $(#[$list_doc])*
        pub const $list: &[RunOption] = &[
            $( $crate::options::declaration::options!(
                @declared Reading, $read_name: $read_type = $read_default, [$($read_doc)+],
                $read_option
            ), )*
            $($( $crate::options::declaration::options!(
                @declared $group, $name: $type = $default, [$($doc)+], $option
            ), )*)*
        ];
    };

    (
        @declared $group:ident, $name:ident: $type:ty = $default:expr, [$($doc:literal)+],
        $option:expr
    ) => {
        RunOption {
            name: stringify!($name),
            group: OptionGroup::$group,
            default: || {
                let default: $type = $default;
                serde_json::json!(default)
            },
            doc: concat!($($doc),+).trim_ascii_start(),
            ..$option
        }
    };
}
pub(crate) use options;

/// Reads the value of a field that is present, so that `None` means only that the field is missing.
pub(crate) fn present<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(from).map(Some)
}

/// Option with the value that it has in a run.
pub(crate) struct Setting {
    pub option: &'static RunOption,
    pub value: Value,
}

impl Setting {
    /// Returns `true` if the value is not the default.
    pub fn is_given(&self) -> bool {
        self.value != (self.option.default)()
    }
}

/// Returns the options of `list` with their values in `run`, a run as JSON.
///
/// # Panics
/// Panics if `run` was not made from the struct that belongs to `list`.
pub(crate) fn settings(list: &'static [RunOption], run: &Value) -> Vec<Setting> {
    let value = |option: &RunOption| match option.group {
        OptionGroup::Reading => run["reading"][option.name].clone(),
        _ => run[option.name].clone(),
    };
    list.iter().map(|option| Setting { option, value: value(option) }).collect()
}

/// Returns the options that the configuration of a run contains, in the order of their places.
///
/// The first map contains the options of the run, the second the options for reading a trace.
pub(crate) fn recorded(settings: &[Setting]) -> [Map<String, Value>; 2] {
    let open = settings.iter().any(|s| s.option.name == "mode" && s.value == "open");
    let mut found: Vec<(u8, &Setting)> = settings
        .iter()
        .filter(|setting| match setting.option.recorded {
            Recorded::Never => false,
            Recorded::Always(_) => true,
            Recorded::IfGiven(_) => setting.is_given(),
            Recorded::InOpenMode(_) => open,
        })
        .filter_map(|setting| Some((setting.option.recorded.place()?, setting)))
        .collect();
    found.sort_by_key(|(place, _)| *place);
    [false, true].map(|reading| {
        let of_group = found.iter().map(|(_, setting)| setting);
        of_group
            .filter(|setting| (setting.option.group == OptionGroup::Reading) == reading)
            .map(|setting| (setting.option.name.to_owned(), setting.value.clone()))
            .collect()
    })
}

/// Returns the name of the first given option that a job file sets itself.
pub(crate) fn first_by_job_file(settings: &[Setting]) -> Option<&'static str> {
    let given = settings.iter().filter(|setting| setting.is_given());
    given
        .filter_map(|setting| Some((setting.option.by_job_file?, setting.option.name)))
        .min()
        .map(|(_, name)| name)
}

/// Returns the name of the first given option for reading a trace.
pub(crate) fn first_of_reading(settings: &[Setting]) -> Option<&'static str> {
    let reading = settings.iter().filter(|s| s.option.group == OptionGroup::Reading);
    reading.filter(|setting| setting.is_given()).map(|setting| setting.option.name).next()
}
