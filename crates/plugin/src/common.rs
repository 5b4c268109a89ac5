//! Texts, callbacks and errors, which the definitions of all kinds of parts share.

use flashatlas_types::{Dur, ParamDef, PartFault, Ps};
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::fmt;
use std::sync::Mutex;

/// Reason why a library cannot be used.
#[derive(Debug)]
pub struct PluginError(String);

impl PluginError {
    pub(crate) fn new(why: impl Into<String>) -> PluginError {
        PluginError(why.into())
    }
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PluginError {}

/// Fields that parts of every kind have.
pub(crate) struct Common {
    /// Name of the part in messages: `plug-in NAME: part`.
    pub who: &'static str,
    pub name: &'static str,
    pub summary: &'static str,
    pub paper: &'static str,
    pub params: &'static [ParamDef],
}

/// Returns a copy of a plug-in's text that lives as long as the process.
///
/// # Safety
/// `at` is null or points to bytes that end with a zero.
pub(crate) unsafe fn text(
    who: &str,
    what: &str,
    at: *const c_char,
) -> Result<&'static str, PluginError> {
    if at.is_null() {
        return Err(PluginError::new(format!("{who}: the {what} is null; it must be a text")));
    }
    // SAFETY: as the caller says
    let text = unsafe { CStr::from_ptr(at) };
    let text = text.to_str().map_err(|_| {
        PluginError::new(format!("{who}: the {what} is not UTF-8: {}", text.to_string_lossy()))
    })?;
    Ok(for_ever(text))
}

/// Returns a text that lives as long as the process. Equal texts are stored once.
fn for_ever(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().expect("no thread panics while it holds the lock");
    match texts.get(text) {
        Some(text) => text,
        None => {
            let text: &'static str = text.to_owned().leak();
            texts.insert(text);
            text
        }
    }
}

/// Ends the run after a callback has answered `FA_FAULT`. The reason is `why`.
pub(crate) fn fault(who: &'static str, callback: &str, now: Ps, why: Option<*const c_char>) -> ! {
    let at = if now == Ps::ZERO { String::new() } else { format!(" at {}", Dur(now.0)) };
    // SAFETY: as the header says, a text or null
    let why = why.and_then(|why| unsafe { text(who, "fault", why) }.ok());
    PartFault::raise(
        who,
        format!("`{callback}`{at}: {}", why.unwrap_or("the plug-in gives no reason")),
    )
}

/// Returns an error if one of these callbacks is null.
pub(crate) fn required(who: &str, callbacks: &[(&str, bool)]) -> Result<(), PluginError> {
    match callbacks.iter().find(|(_, there)| !there) {
        None => Ok(()),
        Some((name, _)) => Err(PluginError::new(format!(
            "{who}: the callback `{name}` is null; it must be a function"
        ))),
    }
}
