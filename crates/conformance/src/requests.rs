//! Trials of trace formats, generators and metrics.

use crate::{Trial, Tried};
use flashatlas_sim::metrics::{METRICS, MetricDef};
use flashatlas_types::{RawConfig, Rng, Seed};
use flashatlas_workload::{FormatDef, GeneratorDef, ReadOptions, RecordSource, Start};
use std::io::Cursor;

/// Maximum number of records that are read from one trace or generator.
const MOST: usize = 5000;

/// Returns texts of bytes that are not a valid trace.
///
/// A reader must return records or an error for them.
fn garbage(seed: u64) -> Vec<Vec<u8>> {
    let mut rng = Rng::stream(Seed(seed), "conformance.garbage");
    let mut all: Vec<Vec<u8>> = vec![
        vec![],
        b"\n".to_vec(),
        vec![0; 64],
        vec![0xff; 4096],
        b"1,2,3,4,5,6,7\n".to_vec(),
        b"0 0 18446744073709551615 18446744073709551615 1\n".to_vec(),
        b"-1 -1 -1 -1 -1\n".to_vec(),
        b"1e400,nan,inf,W,0,0\n".to_vec(),
    ];
    for _ in 0..200 {
        let len = rng.below(400) as usize;
        all.push((0..len).map(|_| rng.below(256) as u8).collect());
        let words = ["0", "1", "W", "R", ",", " ", "\n", "4096", "write", "9999999999999999999"];
        let words = (0..rng.below(60)).map(|_| words[rng.below(words.len() as u64) as usize]);
        all.push(words.collect::<String>().into_bytes());
    }
    all
}

/// Checks that a format returns records or an error for any bytes.
pub fn check_format(trial: &mut Trial<'_>, def: &'static FormatDef) {
    let rerun = format!("flashatlas trace info --format {} FILE", def.name);
    trial.promise("any bytes", &rerun, |trial| {
        let defaults =
            RawConfig::default().resolve(&def.params.iter().collect::<Vec<_>>(), |_| None);
        let Ok(params) = defaults else {
            return Ok("nothing, because a parameter has no default".into());
        };
        let options = ReadOptions::default();
        let (mut read, mut errors) = (0u64, 0u64);
        for bytes in garbage(trial.effort.seed) {
            let head = bytes[..bytes.len().min(4096)].to_vec();
            (def.sniff)(&head);
            let start = Start { head: &head, params: &params, options: &options };
            let opened = (def.open)(Box::new(Cursor::new(bytes)), &start);
            let Ok(mut reader) = opened else {
                errors += 1;
                continue;
            };
            for _ in 0..MOST {
                match reader.source.next() {
                    Ok(Some(_)) => read += 1,
                    Ok(None) => break,
                    Err(_) => {
                        errors += 1;
                        break;
                    }
                }
            }
        }
        Ok(format!("{read} records and {errors} errors from damaged bytes"))
    });
}

/// Reason why a generator returned no records.
enum Refused {
    /// The generator refused the drive.
    Drive(String),
    /// The generator broke its promise.
    Wrong(String),
}

impl Refused {
    fn text(self) -> String {
        match self {
            Refused::Drive(text) | Refused::Wrong(text) => text,
        }
    }
}

/// Returns the records of a generator on a drive of `sectors` sectors.
fn generated(def: &'static GeneratorDef, sectors: u64, seed: u64) -> Result<Vec<String>, Refused> {
    let params = RawConfig::default()
        .resolve(&def.params.iter().collect::<Vec<_>>(), |_| None)
        .map_err(|e| Refused::Wrong(e.to_string()))?;
    let mut source: Box<dyn RecordSource> =
        (def.build)(&params, sectors, Seed(seed)).map_err(|e| Refused::Drive(e.to_string()))?;
    let mut all = Vec::new();
    while all.len() < MOST {
        let Some(record) = source.next().map_err(|e| Refused::Wrong(e.to_string()))? else { break };
        let request = record.request;
        let end = request.lba.0.checked_add(u64::from(request.sectors));
        if end.is_none_or(|end| end > sectors) {
            let what = format!("{request:?} ends beyond the {sectors} sectors of the drive");
            return Err(Refused::Wrong(what));
        }
        all.push(format!("{record:?}"));
    }
    Ok(all)
}

/// Checks that a generator's requests stay on the drive and are the same for the same seed.
pub fn check_generator(trial: &mut Trial<'_>, def: &'static GeneratorDef) {
    let rerun = format!("flashatlas workloads {}", def.name);
    trial.promise("requests on the drive, the same twice", &rerun, |trial| -> Tried {
        let seed = trial.effort.seed;
        let mut count = 0;
        // try drives of 8 MiB, 1 GiB and 1 TiB
        for sectors in [1 << 14, 1 << 21, 1 << 31] {
            let one = match generated(def, sectors, seed) {
                // a generator may refuse a drive that is too small, but not the largest
                Err(Refused::Drive(_)) if sectors < 1 << 31 => continue,
                one => one.map_err(|e| (e.text(), rerun.clone()))?,
            };
            let two = generated(def, sectors, seed).map_err(|e| (e.text(), rerun.clone()))?;
            if one != two {
                let at = one.iter().zip(&two).position(|(a, b)| a != b).unwrap_or(0);
                let found = format!("request {at} differs between two runs of one seed");
                return Err((found, rerun.clone()));
            }
            if one.is_empty() {
                let found = format!("no request on a drive of {sectors} sectors");
                return Err((found, rerun.clone()));
            }
            count += one.len();
        }
        Ok(format!("{count} requests on three drives"))
    });
}

/// Records the reason why no trial checks that a metric only observes the run.
pub fn check_metric(trial: &mut Trial<'_>, def: &'static MetricDef) {
    if METRICS.iter().any(|own| own.name == def.name) {
        trial.not_tried("observes", "the tests of FlashAtlas check records with this metric");
        return;
    }
    trial.not_tried("observes", "a metric gets shared references and cannot change the run");
}
