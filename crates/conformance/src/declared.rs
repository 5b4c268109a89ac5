//! Checks of the declarations of a part.

use crate::Trial;
use flashatlas_device::Part;
use flashatlas_sim::AnyPart;
use flashatlas_types::{Entry, ParamDef};

/// Returns `true` if a name can be written in settings, lists and identities of failures.
fn is_name(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !name.is_empty()
        && name.chars().all(letters)
        && name.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Returns the summary, the source and the parameters of a part.
fn said(
    trial: &Trial<'_>,
    part: AnyPart,
) -> (&'static str, Option<&'static str>, Vec<&'static ParamDef>) {
    fn own<T: Entry>(def: &T) -> Vec<&'static ParamDef> {
        def.params().iter().collect()
    }
    match part {
        AnyPart::Drive(Part::Scheme(def)) => {
            let own = (def.params)(&trial.parts.drives.ftl, &|_| None).unwrap_or_default();
            (def.summary, Some(def.paper), own)
        }
        AnyPart::Drive(Part::Store(def)) => (def.summary, Some(def.paper), own(def)),
        AnyPart::Drive(Part::Victim(def)) => (def.summary, Some(def.paper), own(def)),
        AnyPart::Drive(Part::Classifier(def)) => (def.summary, Some(def.paper), own(def)),
        AnyPart::Drive(Part::Caching(def)) => (def.summary, Some(def.paper), own(def)),
        AnyPart::Drive(Part::Hash(def)) => (def.summary, Some(def.paper), own(def)),
        AnyPart::Drive(Part::Layer(def)) => (def.summary, Some(def.paper), own(def)),
        AnyPart::Format(def) => (def.summary, Some(def.source), own(def)),
        AnyPart::Generator(def) => (def.summary, None, own(def)),
        AnyPart::Metric(def) => (def.summary, None, own(def)),
        _ => ("a drive", None, Vec::new()),
    }
}

/// Checks the name, the summary, the source and the parameters of a part.
///
/// Each parameter must have a description, and its default, if there is one, must be in the
/// parameter's range.
pub fn check(trial: &mut Trial<'_>, part: AnyPart) {
    trial.promise("declared", "flashatlas explain NAME", |trial| {
        let (kind, name) = part.named();
        let wrong = |why: String| Err((why, format!("flashatlas explain {name}")));
        if !is_name(name) {
            return wrong(format!(
                "the name of {kind} `{name}` must be a lower-case letter, followed by lower-case \
                 letters, digits, `-` or `_`"
            ));
        }
        let (summary, source, params) = said(trial, part);
        if summary.trim().is_empty() || summary.contains('\n') {
            return wrong("the summary must be one line of text".into());
        }
        if source.is_some_and(|source| source.trim().is_empty()) {
            return wrong(
                "the source is empty: name a paper or a document, or write `none`".into(),
            );
        }
        for param in &params {
            if param.doc.trim().is_empty() {
                return wrong(format!("parameter {} has no description", param.key));
            }
            if let Some(default) = param.default
                && let Err(error) = param.parse(default)
            {
                return wrong(format!("the default of a parameter is wrong: {error}"));
            }
        }
        Ok(format!("name, summary, source, {} parameters", params.len()))
    });
}
