//! Functions that open a shared library and read the definitions of its parts.

use crate::abi::{
    FA_ABI_VERSION, FaClassifier, FaFtl, FaKind, FaPart, FaPlugin, FaStore, FaVictim,
};
use crate::common::{Common, PluginError, text};
use crate::{classifier, firmware, params, store, victim, watch};
use flashatlas_device::Part;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// A library that was opened, and that stays open.
#[derive(Clone)]
pub struct Library {
    /// The name that the library states.
    pub name: &'static str,
    /// The version that the library states.
    pub version: &'static str,
    /// `sha256:` and the digest of the file.
    pub digest: String,
    /// Parts of the library. They can be added to a registry.
    pub parts: Vec<Part>,
}

/// Opens a shared library made with `flashatlas_plugin.h`.
///
/// `bytes` are the bytes of the file, for the digest in records. A call of the library that takes
/// `patience` or longer ends the process.
///
/// # Errors
/// Returns an error if the library cannot be opened, if it was made for another version of the
/// interface, or if the declaration of a part is wrong.
pub fn load(path: &str, bytes: &[u8], patience: Duration) -> Result<Library, PluginError> {
    let wrong = |why: String| PluginError::new(format!("{path}: {why}"));
    // SAFETY: code of the user's own choice runs in this process, which is what a plug-in is for
    let library = unsafe { libloading::Library::new(path) }
        .map_err(|error| wrong(format!("cannot be opened as a shared library: {error}")))?;
    // SAFETY: the header declares the symbol with this type; nothing else can be checked
    let entry =
        unsafe { library.get::<unsafe extern "C" fn() -> *const FaPlugin>(b"flashatlas_plugin") };
    let entry = *entry.map_err(|_| {
        wrong(
            "the library has no symbol `flashatlas_plugin`; build it with flashatlas_plugin.h (in \
             C++, define the symbol inside extern \"C\")"
                .into(),
        )
    })?;
    // the texts and callbacks lie in the library, so it stays loaded
    std::mem::forget(library);
    watch::begin(patience);
    // SAFETY: as above
    let plugin = unsafe { entry().as_ref() }
        .ok_or_else(|| wrong("`flashatlas_plugin` returned null".into()))?;
    if plugin.abi_version != FA_ABI_VERSION {
        return Err(wrong(format!(
            "the library was built with version {} of flashatlas_plugin.h, but this FlashAtlas has \
             version {FA_ABI_VERSION}: build the library again with the header of `flashatlas \
             plugin-header`",
            plugin.abi_version
        )));
    }
    // SAFETY: a plug-in of this version has the structures of the header
    unsafe {
        let name = text(path, "name", plugin.name)?;
        let version = text(path, "version", plugin.version)?;
        let parts = (0..if plugin.parts.is_null() { 0 } else { plugin.part_count as usize })
            .map(|index| part(name, &*plugin.parts.add(index)))
            .collect::<Result<Vec<Part>, PluginError>>()
            .map_err(|error| wrong(error.to_string()))?;
        if parts.is_empty() {
            return Err(wrong("the library has no parts".into()));
        }
        let digest = Sha256::digest(bytes);
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Ok(Library { name, version, digest: format!("sha256:{digest}"), parts })
    }
}

/// Returns the definition of a part.
///
/// # Safety
/// `part` obeys the rules of the header.
unsafe fn part(plugin: &str, part: &FaPart) -> Result<Part, PluginError> {
    // SAFETY: as the caller says
    unsafe {
        let name = text(plugin, "name of a part", part.name)?;
        let who: &'static str = format!("plug-in {plugin}: {name}").leak();
        let common = Common {
            who,
            name,
            summary: text(who, "summary", part.summary)?,
            paper: text(who, "paper", part.paper)?,
            params: params::declared(who, part.params, part.param_count)?,
        };
        if part.ops.is_null() {
            return Err(PluginError::new(format!("{who}: its callbacks (ops) are null")));
        }
        Ok(match part.kind {
            kind if kind == FaKind::FA_VICTIM as u32 => {
                let ops = *part.ops.cast::<FaVictim>();
                Part::Victim(Box::leak(Box::new(victim::definition(common, ops)?)))
            }
            kind if kind == FaKind::FA_CLASSIFIER as u32 => {
                let ops = *part.ops.cast::<FaClassifier>();
                Part::Classifier(Box::leak(Box::new(classifier::definition(common, ops)?)))
            }
            kind if kind == FaKind::FA_FTL as u32 => {
                let ops = *part.ops.cast::<FaFtl>();
                Part::Scheme(Box::leak(Box::new(firmware::definition(common, ops)?)))
            }
            kind if kind == FaKind::FA_STORE as u32 => {
                let ops = *part.ops.cast::<FaStore>();
                Part::Store(Box::leak(Box::new(store::definition(common, ops)?)))
            }
            kind => {
                return Err(PluginError::new(format!("{who}: the kind {kind} is not an fa_kind")));
            }
        })
    }
}
