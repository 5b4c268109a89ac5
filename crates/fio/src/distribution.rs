//! Parsing of the parameters of `random_distribution` and `bssplit`.

use super::value::{Arg, ByDir};

/// Maximum number of entries of `bssplit`, and of zones of `random_distribution`, for each
/// direction (fio's limit is 256 zones).
const MAX_ENTRIES: usize = 256;

/// Law by which random requests are spread over the blocks of a file.
#[derive(Clone, PartialEq, Debug)]
pub enum Distribution {
    /// All blocks have the same probability.
    Random,
    /// Zipf's law with exponent `theta`. A hash spreads the ranks over the file, from a random
    /// place or from `centre` (0 to 1) if this is given.
    Zipf {
        /// The exponent; not 1.
        theta: f64,
        /// Place of rank 1, as a share of the file.
        centre: Option<f64>,
    },
    /// Pareto's law with power `h`.
    Pareto {
        /// Power, between 0 and 1.
        h: f64,
        /// Place of rank 1, as for Zipf.
        centre: Option<f64>,
    },
    /// Normal law about the middle of the file, or about `centre`.
    Normal {
        /// Deviation in percent of the file, from 0 to 100.
        deviation: f64,
        /// Place of the mean, as a share of the file.
        centre: Option<f64>,
    },
    /// Zones by direction, each with a share of the requests.
    Zoned {
        /// `true` if sizes are in bytes, and `false` if they are in percent of the file.
        absolute: bool,
        /// The zones, in order of address.
        zones: ByDir<Vec<Zone>>,
    },
}

/// A part of the file, and its share of the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Share of the requests, in percent.
    pub access: u32,
    /// Size of the zone, in percent of the file or in bytes.
    pub size: u64,
}

/// One size of `bssplit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Size of the requests, in bytes.
    pub bytes: u64,
    /// Share of the requests, in percent.
    pub percent: u32,
}

impl Distribution {
    pub(super) fn parse(arg: &Arg<'_>) -> Result<Distribution, String> {
        let text = arg.text()?;
        let (name, rest) =
            text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        match name {
            "random" => Ok(Distribution::Random),
            "zipf" => {
                let (theta, centre) = floats(rest, 1.1)?;
                if !(theta > 0.0 && theta != 1.0) {
                    return Err(format!(
                        "`zipf:{theta}` is not defined by fio; give a number above 0 other than 1"
                    ));
                }
                Ok(Distribution::Zipf { theta, centre })
            }
            "pareto" => {
                let (h, centre) = floats(rest, 0.2)?;
                if !(h > 0.0 && h < 1.0) {
                    return Err(format!(
                        "`pareto:{h}` is out of range; give a number between 0 and 1"
                    ));
                }
                Ok(Distribution::Pareto { h, centre })
            }
            "normal" => {
                let (deviation, centre) = floats(rest, 0.0)?;
                if !(0.0..=100.0).contains(&deviation) {
                    return Err(format!(
                        "`normal:{deviation}` is out of range; give a number from 0 to 100"
                    ));
                }
                Ok(Distribution::Normal { deviation, centre })
            }
            "zoned" | "zoned_abs" => {
                let absolute = name == "zoned_abs";
                let mut zones: ByDir<Vec<Zone>> = Default::default();
                let list = rest
                    .ok_or_else(|| format!("`{name}` needs zones, such as {name}:60/10:40/90"))?;
                let list = Arg { text: Some(list), ..*arg };
                list.by_dir(&mut zones, |one| parse_zones(one, absolute))?;
                Ok(Distribution::Zoned { absolute, zones })
            }
            _ => Err(format!(
                "distribution `{name}` is not known (allowed: random, zipf, pareto, normal, zoned, \
                 zoned_abs)"
            )),
        }
    }
}

/// Parses `value[:centre]`; without text, returns `default` and no centre.
fn floats(text: Option<&str>, default: f64) -> Result<(f64, Option<f64>), String> {
    let float = |text: &str| match text.trim().parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        _ => Err(format!("`{text}` is not a number; write a number such as 1.2")),
    };
    let Some(text) = text else { return Ok((default, None)) };
    let (value, centre) =
        text.split_once(':').map_or((text, None), |(value, centre)| (value, Some(centre)));
    let centre = centre.map(float).transpose()?;
    match centre {
        Some(c) if !(0.0..=1.0).contains(&c) => {
            Err(format!("centre {c} is out of range; give a number from 0 to 1"))
        }
        _ => Ok((float(value)?, centre)),
    }
}

fn parse_zones(arg: &Arg<'_>, absolute: bool) -> Result<Vec<Zone>, String> {
    let mut given = Vec::new();
    for entry in entries(arg.text()?)? {
        let (access, size) = entry.split_once('/').unwrap_or((entry, ""));
        let size = match (size, absolute) {
            (size, true) => Some(arg.number(size)?),
            ("", false) => None,
            // fio treats a share of 0 as a missing share
            (size, false) => Some(percent(arg, size)?).filter(|&s| s > 0).map(u64::from),
        };
        given.push((percent(arg, access)?, size));
    }
    let access: u32 = given.iter().map(|z| z.0).sum();
    if access != 100 {
        return Err(format!(
            "the zones get {access} percent of the requests; they must get 100 percent"
        ));
    }
    let total = given.iter().try_fold(0u64, |sum, z| sum.checked_add(z.1.unwrap_or(0)));
    let total = total.ok_or("the zones are larger than 2^64 bytes")?;
    if !absolute && total > 100 {
        return Err(format!(
            "the zones take {total} percent of the file; they can take at most 100 percent"
        ));
    }
    // zones without a size share the rest of the file
    let open = given.iter().filter(|z| z.1.is_none()).count() as u64;
    let rest = 100u64.saturating_sub(total).checked_div(open).unwrap_or(0);
    Ok(given.iter().map(|&(access, size)| Zone { access, size: size.unwrap_or(rest) }).collect())
}

/// Returns the sizes of `bssplit` for one direction, the most frequent first.
///
/// fio looks up sizes in this order.
pub(super) fn parse_split(arg: &Arg<'_>) -> Result<Vec<Share>, String> {
    let mut shares = Vec::new();
    for entry in entries(arg.text()?)? {
        let (bytes, share) = entry.split_once('/').unwrap_or((entry, ""));
        let bytes = Arg { text: Some(bytes), ..*arg }.size()?;
        // fio treats a share of 0 as a missing share
        let share = if share.trim().is_empty() { 0 } else { percent(arg, share)? };
        shares.push((bytes, Some(share).filter(|&s| s > 0)));
    }
    let given: u32 = shares.iter().filter_map(|s| s.1).sum();
    let open = shares.iter().filter(|s| s.1.is_none()).count() as u32;
    if given > 100 {
        return Err(format!(
            "the sizes get {given} percent of the requests; they must get 100 percent"
        ));
    }
    let rest = (100 - given).checked_div(open).unwrap_or(0);
    let mut shares: Vec<Share> = shares
        .iter()
        .map(|&(bytes, share)| Share { bytes, percent: share.unwrap_or(rest) })
        .collect();
    shares.sort_by_key(|s| std::cmp::Reverse(s.percent));
    Ok(shares)
}

fn entries(text: &str) -> Result<Vec<&str>, String> {
    let list: Vec<&str> = text.split(':').take(MAX_ENTRIES + 1).map(str::trim).collect();
    if list.len() > MAX_ENTRIES {
        return Err(format!("the list has more than {MAX_ENTRIES} entries"));
    }
    Ok(list)
}

fn percent(arg: &Arg<'_>, text: &str) -> Result<u32, String> {
    let text = text.trim();
    let percent = Arg { text: Some(text.strip_suffix('%').unwrap_or(text)), ..*arg };
    percent.plain(0, 100).map(|n| n as u32)
}
