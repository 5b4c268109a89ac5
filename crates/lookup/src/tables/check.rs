//! The rules of the tables. For every link there must be a link back.

use super::{Location, Tables};
use flashatlas_types::Violation;

impl Tables {
    /// Checks every link of the LPMT and of the block tables.
    ///
    /// # Errors
    /// Returns the first violation.
    pub fn check(&self) -> Result<(), Violation> {
        let shape = *self.lpmt.shape();
        let broken = |detail: String| {
            Err(Violation { rule: "the links of the LPMT lead in both directions", detail })
        };
        let mut in_chains = 0;
        let mut entries = [0, 0];
        let mut pages = 0;
        for key in 0..shape.sets() {
            let mut set = key;
            loop {
                let valid = (0..shape.ways)
                    .map(|way| Location { set, way })
                    .filter(|&at| self.lpmt.is_valid(at));
                let valid: Vec<Location> = valid.collect();
                entries[usize::from(set != key)] += valid.len() as u64;
                for &at in &valid {
                    let la = self.lpmt.address(at);
                    if self.key(la) != key {
                        return broken(format!(
                            "address {la} with key {} is in the chain of {key}",
                            self.key(la)
                        ));
                    }
                    pages += self.check_file(at)?;
                }
                if set != key && valid.is_empty() {
                    return broken(format!(
                        "secondary set {set} is empty, but is in the chain of {key}"
                    ));
                }
                let Some(next) = self.lpmt.next(set) else { break };
                if shape.dense && valid.len() < shape.ways as usize {
                    return broken(format!(
                        "set {set} is not the last of its chain, but is not full"
                    ));
                }
                if self.lpmt.previous(next) != Some(set) {
                    return broken(format!(
                        "NSid of set {set} is {next}, whose PSid is {:?}",
                        self.lpmt.previous(next)
                    ));
                }
                in_chains += 1;
                if in_chains > shape.secondary_sets {
                    return broken(format!("the chain of {key} has no end"));
                }
                set = next;
            }
        }
        let free = self.lpmt.free_sets().take(shape.secondary_sets as usize + 1).count() as u32;
        if free + in_chains != shape.secondary_sets || in_chains != self.lpmt.secondary_used {
            return broken(format!(
                "of {} secondary sets, {in_chains} are in chains and {free} are free",
                shape.secondary_sets
            ));
        }
        if entries != self.lpmt.used {
            return broken(format!(
                "{entries:?} entries were found, but {:?} are noted",
                self.lpmt.used
            ));
        }
        let valid: u64 =
            (0..shape.block_tables).map(|table| u64::from(self.blocks.valid_rows(table))).sum();
        if valid != pages {
            return broken(format!(
                "{valid} rows are valid, but {pages} rows are reached from the LPMT"
            ));
        }
        Ok(())
    }

    /// Checks the links of one file. Returns the number of its pages.
    fn check_file(&self, at: Location) -> Result<u64, Violation> {
        let la = self.lpmt.address(at);
        let (first, single) = self.lpmt.get(at);
        let broken = |why: String| {
            Err(Violation {
                rule: "the pages of a file are linked both ways",
                detail: format!("file {la}: {why}"),
            })
        };
        if self.lpmt.shape().fits_address(la).is_err() || !self.blocks.is_valid(first) {
            return broken(format!("its first page {first} is not valid"));
        }
        if self.blocks.location(first) != Some(at) {
            return broken(format!(
                "PPid of its first page is {:?}, but its entry is at {at:?}",
                self.blocks.location(first)
            ));
        }
        let mut count = 1;
        let mut pn = first;
        while let Some(next) = self.blocks.next(pn) {
            if self.blocks.flags(next) != [true, false, self.blocks.next(next).is_none()] {
                return broken(format!(
                    "page {next}, which follows page {pn}, has the wrong flags V, F, L: {:?}",
                    self.blocks.flags(next)
                ));
            }
            if self.blocks.previous(next) != Some(pn) {
                return broken(format!(
                    "PPid of page {next} is {:?}, not {pn}",
                    self.blocks.previous(next)
                ));
            }
            count += 1;
            if count > u64::from(self.lpmt.shape().block_tables) * u64::from(self.lpmt.shape().rows)
            {
                return broken("its list of pages has no end".into());
            }
            pn = next;
        }
        if single != (count == 1) {
            return broken(format!("S is {single}, but the file has {count} pages"));
        }
        Ok(count)
    }
}
