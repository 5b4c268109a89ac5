//! Division. The key is the remainder of the address, divided by at most the number of sets.

use super::{Hash, HashDef};
use flashatlas_types::{ConfigError, Param, Text};

pub const DEF: HashDef = HashDef {
    name: "division",
    summary: "the remainder of the address by lookup.divisor",
    paper: "Singh and Garg, Choosing best hashing strategies (2009), as Song et al. (2019) cite it",
    params: &[DIVISOR.def],
    build: &|params, _, set_bits| {
        let sets = 1u32 << set_bits;
        let bad = |why: String| ConfigError {
            allowed: vec![format!("1 to {sets}"), "prime".into()],
            ..ConfigError::new("lookup.divisor", why)
        };
        let divisor = match params.get(DIVISOR) {
            "prime" => largest_prime(sets),
            text => text
                .replace('_', "")
                .parse()
                .map_err(|_| bad(format!("`{text}` is not a number")))?,
        };
        if divisor == 0 || divisor > sets {
            return Err(bad(format!(
                "the divisor {divisor} does not give a key for each of {sets} sets"
            )));
        }
        Ok(Box::new(Division { divisor }))
    },
};

const DIVISOR: Param<Text> = Param::text(
    "lookup.divisor",
    "divisor of `division`: a number from 1 to the number of sets, or `prime`, the largest prime \
     number in this range",
)
.or("prime");

struct Division {
    divisor: u32,
}

impl Hash for Division {
    #[inline]
    fn key(&self, la: u32) -> u32 {
        la % self.divisor
    }
}

/// Returns the largest prime number that is at most `limit`, or 1 if there is none.
fn largest_prime(limit: u32) -> u32 {
    let is_prime = |n: &u32| (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0);
    (2..=limit).rev().find(is_prime).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::largest_prime;

    #[test]
    fn primes_beside_powers_of_two() {
        // the Mersenne prime 2^17 - 1, and 2^16 - 15
        assert_eq!([largest_prime(1), largest_prime(2), largest_prime(1 << 16)], [1, 2, 65_521]);
        assert_eq!(largest_prime(1 << 17), 131_071);
    }
}
