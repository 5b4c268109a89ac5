//! The mapping schemes.

mod bast;
mod block;
mod fast;
mod faster;
mod last;
mod mast;
mod page;
mod sast;
mod superblock;

pub(crate) use page::GC_PACE;

use crate::maps::StoreConfig;
use crate::{Ftl, FtlContext, MountLimit, Registry};
use flashatlas_types::{
    BlockId, ConfigError, FtlError, Layout, Lpn, Mechanism, ParamDef, Params, Seed, SeededBug,
    Stamp,
};

/// What a scheme is built of: checked parameters, and the parts that their names choose from.
#[derive(Clone, Copy)]
pub struct SchemeConfig<'a> {
    /// Parameters of the drive.
    pub params: &'a Params,
    /// Map stores, victim policies and classifiers.
    pub parts: &'a Registry,
}

impl SchemeConfig<'_> {
    /// What a map store is made of.
    pub fn store(&self) -> StoreConfig<'_> {
        let Registry { caching, hashes, .. } = *self.parts;
        StoreConfig { params: self.params, caching, hashes }
    }
}

/// The text that is given for a key, if one is.
pub type TextOf<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// The parameters of a scheme and of the parts that the given texts select, by key.
pub type SchemeParams =
    dyn Fn(&Registry, &TextOf<'_>) -> Result<Vec<&'static ParamDef>, ConfigError> + Send + Sync;

/// Whether a layout can work with a scheme.
pub type Fits = dyn Fn(&SchemeConfig<'_>, &Layout) -> Result<(), ConfigError> + Send + Sync;

/// What a mount takes at most.
pub type LimitOfMount = dyn Fn(&SchemeConfig<'_>, &Layout) -> MountLimit + Send + Sync;

/// A scheme that is ready, or why it cannot mount.
pub type Mounted = Result<Box<dyn Ftl>, FtlError>;

/// Rebuilds a scheme's tables from the medium.
pub type Mount = dyn Fn(&SchemeConfig<'_>, &mut FtlContext<'_>, Seed) -> Mounted + Send + Sync;

/// Programs a blank medium, through its operations, as uniform random writes of single units would
/// leave it in the long run. The first function gives what each page holds; the second hears now
/// and then how many pages were placed, and stops it by answering `false`, as it then does. The
/// scheme is mounted afterwards.
pub type MakeSteady = fn(
    &SchemeConfig<'_>,
    &mut FtlContext<'_>,
    Seed,
    &dyn Fn(Lpn) -> Stamp,
    &mut dyn FnMut(u64) -> bool,
) -> Result<bool, ConfigError>;

/// The steady state of a scheme.
#[derive(Clone, Copy)]
pub struct SteadyState {
    /// Whether the parts that are in use have a model of it, before anything is built.
    pub check: fn(&SchemeConfig<'_>) -> Result<(), ConfigError>,
    /// Bring a blank medium into it.
    pub make: MakeSteady,
}

/// One scheme of the registry.
pub struct SchemeDef {
    /// Name in `ftl.scheme`.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it is described.
    pub paper: &'static str,
    /// Its parameters under these parameter values (a scheme with parts has theirs, too).
    pub params: &'static SchemeParams,
    /// Whether the layout can work, before anything is built; the logical capacity is part of the
    /// layout.
    pub fits: &'static Fits,
    /// Rebuild the scheme's tables from the medium ([`SchemeDef::mount`] is what calls it).
    /// Formatting is mounting a blank medium.
    pub rebuild: &'static Mount,
    /// Parameters, beside the shape of the drive, that decide the places of pages on flash: a
    /// medium is mounted only under the values with which it was written.
    pub on_flash: &'static [&'static str],
    /// What a mount takes at most; `docs/FORMATS.md` says why.
    pub mount_limit: &'static LimitOfMount,
    /// How a blank medium is brought into its steady state, where the scheme knows one.
    pub steady: Option<SteadyState>,
    /// Settings with which the scheme can do on a drive of a few blocks; every one of them is tried
    /// at every power failure.
    pub small: &'static [&'static [&'static str]],
    /// What its paper describes and a run may or may not reach, each with its counter.
    pub mechanisms: &'static [Mechanism],
}

flashatlas_types::entry!(SchemeDef, "scheme", "ftl.scheme", none);

impl SchemeDef {
    /// Its steady state, if it and the parts that are in use have a model of one.
    ///
    /// # Errors
    /// When they have none; the message says what to do instead.
    pub fn steady_state(&self, config: &SchemeConfig<'_>) -> Result<MakeSteady, ConfigError> {
        let found = self.steady.ok_or_else(|| {
            let why = format!(
                "the steady state of `{}` has no model: use ‹precondition=fill› or a trace",
                self.name
            );
            ConfigError::new("ftl.scheme", why)
        })?;
        (found.check)(config)?;
        Ok(found.make)
    }

    /// Rebuild the scheme's tables from the medium, once the page of each block that was programmed
    /// last has been read twice: a program in which the power failed may be readable once and never
    /// again. Nothing is made of such a page.
    ///
    /// # Errors
    /// When the scheme cannot mount what it finds; when the power fails.
    pub fn mount(
        &self,
        config: &SchemeConfig<'_>,
        cx: &mut FtlContext<'_>,
        seed: Seed,
    ) -> Result<Box<dyn Ftl>, FtlError> {
        let medium = &mut *cx.flash.medium;
        for block in (0..medium.layout().blocks()).map(BlockId) {
            if let Some(frame) =
                medium.last_programmed(block).filter(|_| !SeededBug::ReadOnce.is_active())
            {
                medium.reread(frame);
            }
        }
        (self.rebuild)(config, cx, seed)
    }
}

/// All schemes.
pub const SCHEMES: &[SchemeDef] = &[
    page::DEF,
    block::DEF,
    bast::DEF,
    fast::DEF,
    faster::DEF,
    sast::DEF,
    superblock::DEF,
    last::DEF,
    mast::DEF,
];
