//! Parameters that a plug-in declares, and their values.

use crate::abi::{FaParam, FaType, FaValue};
use crate::common::{PluginError, text};
use flashatlas_types::{ParamDef, ParamKind, Params, Value};

/// Largest bound of a whole number. Bounds have the type `double`, which is exact up to this
/// number.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Returns the declarations of a part's parameters.
///
/// The declarations are never freed, because registries return `'static` declarations.
///
/// # Safety
/// `params` is null or points to `count` declarations, whose texts end with a zero byte.
pub unsafe fn declared(
    who: &str,
    params: *const FaParam,
    count: u32,
) -> Result<&'static [ParamDef], PluginError> {
    let mut all = Vec::new();
    for index in 0..if params.is_null() { 0 } else { count as usize } {
        // SAFETY: below `count`
        let param = unsafe { &*params.add(index) };
        // SAFETY: as the caller says
        let (key, doc, fallback) = unsafe {
            (
                text(who, "key of a parameter", param.key)?,
                text(who, "doc of a parameter", param.doc)?,
                text(who, "fallback of a parameter", param.fallback)?,
            )
        };
        let wrong = |why: String| PluginError::new(format!("{who}: parameter `{key}`: {why}"));
        if !key.contains('.') || key.starts_with('.') || key.ends_with('.') {
            return Err(wrong("the key needs a section and a name, such as `ftl.window`".into()));
        }
        let whole = || match (param.low, param.high) {
            (low, high) if low >= 0.0 && low <= high && high <= WHOLE_MAX => {
                Ok((low as u64, high as u64))
            }
            (low, high) => Err(wrong(format!("{low} to {high} is not a range"))),
        };
        let kind = match param.kind {
            k if k == FaType::FA_WHOLE as u32 => whole().map(|(a, b)| ParamKind::Int(a, b))?,
            k if k == FaType::FA_BYTES as u32 => whole().map(|(a, b)| ParamKind::Bytes(a, b))?,
            k if k == FaType::FA_REAL as u32 => ParamKind::Ratio(param.low, param.high),
            k if k == FaType::FA_FLAG as u32 => ParamKind::Bool,
            k if k == FaType::FA_TIME as u32 => ParamKind::Time,
            other => return Err(wrong(format!("the kind {other} is not an fa_type"))),
        };
        let def = ParamDef { key, kind, default: Some(fallback), doc };
        def.parse(fallback).map_err(|e| wrong(format!("the fallback is wrong: {e}")))?;
        all.push(def);
    }
    Ok(all.leak())
}

/// Returns the values of these parameters, in order.
pub fn values(params: &Params, declared: &[ParamDef]) -> Vec<FaValue> {
    let value = |def: &ParamDef| match params.value(def.key) {
        Some(Value::Int(whole)) => FaValue { whole: *whole, real: *whole as f64 },
        Some(Value::Time(time)) => FaValue { whole: time.0, real: time.0 as f64 },
        Some(Value::Ratio(real)) => FaValue { whole: *real as u64, real: *real },
        Some(Value::Bool(flag)) => FaValue { whole: (*flag).into(), real: f64::from(*flag) },
        other => unreachable!("{}: {other:?}", def.key),
    };
    declared.iter().map(value).collect()
}
