//! The digest of a configuration.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of the compact JSON text of a configuration, with its keys in their order.
///
/// If the precondition names a file, only the kind of precondition is hashed, because the path of a
/// file is not a part of a configuration. The `interval` of the time series is not hashed, either.
pub fn config_hash(config: &Value) -> String {
    let mut config = config.clone();
    if let Some(precondition) = config.get_mut("precondition")
        && let Some(kind) = precondition.as_object().and_then(|given| given.keys().next())
    {
        *precondition = kind.as_str().into();
    }
    if let Some(config) = config.as_object_mut() {
        config.shift_remove("interval");
    }
    hex(&Sha256::digest(config.to_string().as_bytes()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    /// The digest of the empty object, as any SHA-256 tool gives it for the two bytes `{}`.
    #[test]
    fn known_digest() {
        assert_eq!(
            super::config_hash(&serde_json::json!({})),
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }

    #[test]
    fn places_of_files_do_not_count() {
        let of = |precondition| {
            super::config_hash(&serde_json::json!({ "precondition": precondition, "fit": "error" }))
        };
        let trace = |path| of(serde_json::json!({ "trace": path }));
        assert_eq!(trace("a/b.gz"), trace("b.gz"));
        assert_ne!(trace("b.gz"), of(serde_json::json!({ "checkpoint": "b.gz" })));
        assert_ne!(trace("b.gz"), of(serde_json::json!("fill")));
    }
}
