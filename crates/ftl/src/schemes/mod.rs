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

pub use registry::Registry;

use crate::maps::StoreConfig;
use crate::{Ftl, FtlContext, MountLimit};
use flashatlas_types::{
    ConfigError, FtlError, Layout, Lpn, Mechanism, ParamDef, Params, Seed, SeededBug, Stamp,
};

/// The configuration that a scheme is built from: checked parameters, and the parts to choose from.
#[derive(Clone, Copy)]
pub struct SchemeConfig<'a> {
    /// Parameters of the drive.
    pub params: &'a Params,
    /// Map stores, victim policies and classifiers.
    pub parts: &'a Registry,
}

impl SchemeConfig<'_> {
    /// Returns the configuration that a map store is built from.
    pub fn store(&self) -> StoreConfig<'_> {
        let Registry { caching, kinds, .. } = *self.parts;
        StoreConfig { params: self.params, caching, kinds }
    }
}

/// A function that returns the text given for a key, or `None` if none is given.
pub type TextOf<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A function that returns the parameters of a scheme and of the parts that the given texts select,
/// by key.
pub type SchemeParams =
    dyn Fn(&Registry, &TextOf<'_>) -> Result<Vec<&'static ParamDef>, ConfigError> + Send + Sync;

/// A function that checks that a layout can work with a scheme.
pub type Fits = dyn Fn(&SchemeConfig<'_>, &Layout) -> Result<(), ConfigError> + Send + Sync;

/// A function that returns the most work that a mount takes.
pub type LimitOfMount = dyn Fn(&SchemeConfig<'_>, &Layout) -> MountLimit + Send + Sync;

/// A scheme that is ready, or the reason why it cannot mount.
pub type Mounted = Result<Box<dyn Ftl>, FtlError>;

/// A function that rebuilds a scheme's tables from the medium.
pub type Mount = dyn Fn(&SchemeConfig<'_>, &mut FtlContext<'_>, Seed) -> Mounted + Send + Sync;

/// A function that programs a blank medium into the state that uniform random writes of single
/// units leave in the long run. It uses only operations of the medium, and the scheme is mounted
/// afterwards.
///
/// The first function among its arguments returns the content of each page. The second is called
/// now and then with the number of placed pages, and stops the work by returning `false`. This
/// function then returns `false`, too.
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
    /// Checks that the parts in use have a model of the steady state, before anything is built.
    pub check: fn(&SchemeConfig<'_>) -> Result<(), ConfigError>,
    /// Brings a blank medium into the steady state.
    pub make: MakeSteady,
}

/// One scheme of the registry.
pub struct SchemeDef {
    /// Name in `ftl.scheme`.
    pub name: &'static str,
    /// One line that describes it.
    pub summary: &'static str,
    /// The paper that describes it.
    pub paper: &'static str,
    /// Function that returns the parameters of the scheme and of the parts that are chosen.
    pub params: &'static SchemeParams,
    /// Checks that the layout can work, before anything is built. The logical capacity is part of
    /// the layout.
    pub fits: &'static Fits,
    /// Rebuilds the scheme's tables from the medium; [`SchemeDef::mount`] calls it. To format a
    /// drive is to mount a blank medium.
    pub rebuild: &'static Mount,
    /// Parameters, beside the shape of the drive, that decide the places of pages on flash. A
    /// medium is mounted only under the values with which it was written.
    pub on_flash: &'static [&'static str],
    /// The most work that a mount takes; `docs/FORMATS.md` has the reasons.
    pub mount_limit: &'static LimitOfMount,
    /// The way to bring a blank medium into its steady state, or `None` if the scheme has no model
    /// of it.
    pub steady: Option<SteadyState>,
    /// Settings with which the scheme works on a drive of a few blocks. Every one of them is tried
    /// at every power failure.
    pub small: &'static [&'static [&'static str]],
    /// The mechanisms of its paper that a run may or may not reach, each with its counter.
    pub mechanisms: &'static [Mechanism],
}

flashatlas_types::entry!(SchemeDef, "scheme", "ftl.scheme", none);

impl SchemeDef {
    /// Returns the function that brings a blank medium into the scheme's steady state.
    ///
    /// # Errors
    /// Returns an error that names another way, if the scheme or one of the parts in use has no
    /// model of the steady state.
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

    /// Rebuilds the scheme's tables from the medium.
    ///
    /// First, the last programmed page of each block is read twice. If the power failed during its
    /// program, it may be readable once and never again. The mount uses nothing of such a page.
    ///
    /// # Errors
    /// Returns an error if the scheme cannot mount the medium as it is, or if the power fails.
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
