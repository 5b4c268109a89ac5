//! Damaged copies of the texts that fuzzing begins with (`fuzz/corpus`), so that tests can try
//! them without the nightly compiler that fuzzing needs.

use flashatlas_types::Rng;
use std::path::Path;

/// Returns the inputs of a fuzz target.
///
/// # Panics
/// Panics if there are fewer than `least` inputs.
pub fn corpus(target: &str, least: usize) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort(); // the order of a folder is not the same everywhere
    assert!(files.len() >= least, "the corpus is there");
    files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Returns `count` damaged copies of texts, and takes the texts in turn.
pub fn copies<'a>(
    originals: &'a [String],
    count: usize,
    pieces: &'a [&'a str],
    rng: &'a mut Rng,
) -> impl Iterator<Item = String> + 'a {
    originals.iter().cycle().take(count).map(move |original| {
        let mut text = original.clone();
        damage(&mut text, pieces, rng);
        text
    })
}

/// Damages a text once or twice. Each time it drops the rest of the text, takes out up to six
/// characters, draws a digit anew, or inserts one of `pieces`.
pub fn damage(text: &mut String, pieces: &[&str], rng: &mut Rng) {
    for _ in 0..=rng.below(2) {
        let mut at = rng.below(text.len() as u64 + 1) as usize;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        match rng.below(8) {
            0 => text.truncate(at),
            1 | 2 => {
                let rest = text.split_off(at);
                text.extend(rest.chars().skip(1 + rng.below(6) as usize));
            }
            3 | 4 => {
                // another number
                if let Some(digit) = text[at..].find(|c: char| c.is_ascii_digit()) {
                    let other = char::from(b'0' + rng.below(10) as u8);
                    text.replace_range(at + digit..=at + digit, other.encode_utf8(&mut [0; 4]));
                }
            }
            _ => text.insert_str(at, pieces[rng.below(pieces.len() as u64) as usize]),
        }
    }
}
