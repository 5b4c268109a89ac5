//! The mapping schemes.

mod bast;
mod block;
mod fast;
mod faster;
mod last;
mod mast;
mod page;
mod registry;
mod sast;
mod superblock;

pub use page::{FLUSH, PROGRAM_STEPS, REFRESH, THROTTLE_FROM, THROTTLE_RATE, WORN_OUT};
pub use registry::Registry;

use crate::maps::StoreConfig;
use crate::{Ftl, FtlContext, MountLimit};
use flashatlas_nand::Medium;
use flashatlas_types::base::Steady;
use flashatlas_types::{
    ConfigError, FtlError, Layout, Lpn, Mechanism, ParamDef, Params, Seed, SeededBug, Stamp,
};

/// The configuration of a scheme: checked parameters, and the parts to choose from.
#[derive(Clone, Copy)]
pub struct SchemeConfig<'a> {
    /// Parameters of the drive.
    pub params: &'a Params,
    /// Map stores, victim policies and classifiers.
    pub parts: &'a Registry,
}

impl SchemeConfig<'_> {
    /// Returns the configuration for the map store.
    pub fn store(&self) -> StoreConfig<'_> {
        let Registry { caching, kinds, .. } = *self.parts;
        StoreConfig { params: self.params, caching, kinds }
    }
}

/// A function that returns the text that was given for a key, or `None`.
pub type TextOf<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A function that returns the parameters of a scheme and of the parts that it uses. The second
/// argument returns the text that was given for a key.
pub type SchemeParams =
    dyn Fn(&Registry, &TextOf<'_>) -> Result<Vec<&'static ParamDef>, ConfigError> + Send + Sync;

/// A function that checks that a scheme works with a layout.
pub type Fits = dyn Fn(&SchemeConfig<'_>, &Layout) -> Result<(), ConfigError> + Send + Sync;

/// A function that returns the maximum work of a mount.
pub type LimitOfMount = dyn Fn(&SchemeConfig<'_>, &Layout) -> MountLimit + Send + Sync;

/// A scheme that is ready, or the reason why it cannot mount.
pub type Mounted = Result<Box<dyn Ftl>, FtlError>;

/// A function that rebuilds a scheme's tables from the medium.
pub type Mount = dyn Fn(&SchemeConfig<'_>, &mut FtlContext<'_>, Seed) -> Mounted + Send + Sync;

/// A function that programs a blank medium into the state that uniform random writes of single
/// units reach in the long run. The scheme's tables do not know these programs until the scheme is
/// mounted, which must follow.
///
/// The first function argument returns the content of each page. The second is called from time to
/// time with the number of placed pages. If it returns `false`, the work stops and this function
/// returns `false` too.
pub type MakeSteady = fn(
    &SchemeConfig<'_>,
    &mut FtlContext<'_>,
    Seed,
    &dyn Fn(Lpn) -> Stamp,
    &mut dyn FnMut(u64) -> bool,
) -> Result<bool, ConfigError>;

/// A function that returns the steady state of a blank medium, as [`MakeSteady`] programs it.
pub type BaseOfSteady = fn(&SchemeConfig<'_>, &Medium, Seed) -> Result<Steady, ConfigError>;

/// A function that writes the whole map of a medium that is not mounted to flash, once and in
/// order. It does nothing if the map store writes no map.
pub type WriteMap = fn(&SchemeConfig<'_>, &mut FtlContext<'_>, Seed) -> Result<(), FtlError>;

/// The functions that create the steady state of a scheme.
#[derive(Clone, Copy)]
pub struct SteadyState {
    /// Checks that the chosen parts have a model of the steady state, before anything is built.
    pub check: fn(&SchemeConfig<'_>) -> Result<(), ConfigError>,
    /// Programs a blank medium into the steady state.
    pub make: MakeSteady,
    /// Returns the content of a medium in the steady state.
    pub base: BaseOfSteady,
    /// Writes the whole map. The preparation of a drive ends with this call. The scheme must be
    /// mounted afterwards.
    pub write_map: WriteMap,
    /// Returns whether a mount of a medium that is as its base says ([`Medium::lay`]) takes up the
    /// base, so that the tables take memory only for what changes.
    pub takes_up_a_base: fn(&SchemeConfig<'_>) -> bool,
}

/// One scheme of the registry.
pub struct SchemeDef {
    /// Name in `ftl.scheme`.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// The paper that describes the scheme.
    pub paper: &'static str,
    /// Function that returns the parameters of the scheme and of the chosen parts.
    pub params: &'static SchemeParams,
    /// Checks that the scheme works with the layout, before anything is built. The logical capacity
    /// is part of the layout.
    pub fits: &'static Fits,
    /// Rebuilds the scheme's tables from the medium; [`SchemeDef::mount`] calls it. A drive is
    /// formatted by mounting a blank medium.
    pub rebuild: &'static Mount,
    /// Parameters that decide the places of pages on flash, in addition to the shape of the drive.
    /// A medium can be mounted only with the values with which it was written.
    pub on_flash: &'static [&'static str],
    /// The maximum work of a mount. `docs/FORMATS.md` explains the limits.
    pub mount_limit: &'static LimitOfMount,
    /// The functions that create the steady state on a blank medium, or `None` if the scheme has no
    /// model of that state.
    pub steady: Option<SteadyState>,
    /// Settings with which the scheme works on a drive of a few blocks. Tests cut the power at
    /// every point of a run with each of them.
    pub small: &'static [&'static [&'static str]],
    /// The mechanisms of the scheme's paper, each with a counter of its uses.
    pub mechanisms: &'static [Mechanism],
}

flashatlas_types::entry!(SchemeDef, "scheme", "ftl.scheme", none);

impl SchemeDef {
    /// Returns the functions that bring a blank medium into the scheme's steady state.
    ///
    /// # Errors
    /// Returns an error that suggests another way, if the scheme or one of the chosen parts has no
    /// model of the steady state.
    pub fn steady_state(&self, config: &SchemeConfig<'_>) -> Result<SteadyState, ConfigError> {
        let found = self.steady.ok_or_else(|| {
            let why = format!(
                "the steady state of `{}` has no model: use ‹precondition=fill› or a trace",
                self.name
            );
            ConfigError::new("ftl.scheme", why)
        })?;
        (found.check)(config)?;
        Ok(found)
    }

    /// Rebuilds the scheme's tables from the medium.
    ///
    /// First, the last programmed page of each block is read twice. If the power failed during its
    /// program, the page may be readable once and never again. The mount ignores such a page.
    ///
    /// # Errors
    /// Returns an error if the scheme cannot mount the medium, or if the power fails.
    pub fn mount(
        &self,
        config: &SchemeConfig<'_>,
        cx: &mut FtlContext<'_>,
        seed: Seed,
    ) -> Result<Box<dyn Ftl>, FtlError> {
        let medium = &mut *cx.flash.medium;
        for block in medium.layout().block_ids() {
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
