//! Places of sets in banks: the paper's three configurations, one of which can be read in two ways.

/// Order in which a set's banks are visited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// In order of the banks' numbers.
    Fixed,
    /// The bank that was activated longest ago first (Fig. 7).
    LeastRecent,
}

/// One policy of the registry.
pub struct PolicyDef {
    /// Name in `lookup.policy`.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Source that describes the policy.
    pub paper: &'static str,
    /// `true` if all sets are in one bank.
    pub one_bank: bool,
    /// `true` if a set is spread over several banks.
    pub spread: bool,
    /// Order of visits.
    pub order: Order,
}

/// All policies.
pub const POLICIES: &[PolicyDef] = &[
    PolicyDef {
        name: "single",
        summary: "every set in one bank",
        paper: "Song et al. (2019), Table VI: Single Bank",
        one_bank: true,
        spread: false,
        order: Order::Fixed,
    },
    PolicyDef {
        name: "set-mod",
        summary: "each set whole in one bank, the next set in the next bank",
        paper: "Song et al. (2019), Table VI: 4 Banks Fixed Order, first reading (\"each set is \
                mapped to one of the four banks\")",
        one_bank: false,
        spread: false,
        order: Order::Fixed,
    },
    PolicyDef {
        name: "striped",
        summary: "each set spread over lookup.spread banks, visited in the order of their numbers",
        paper: "Song et al. (2019), Table VI: 4 Banks Fixed Order, second reading",
        one_bank: false,
        spread: true,
        order: Order::Fixed,
    },
    PolicyDef {
        name: "dynamic",
        summary: "each set spread over lookup.spread banks, which are visited in the order of \
                  their last activation, the earliest first",
        paper: "Song et al. (2019), Fig. 7 and Table VI: 4 Banks Dynamic Order",
        one_bank: false,
        spread: true,
        order: Order::LeastRecent,
    },
];
