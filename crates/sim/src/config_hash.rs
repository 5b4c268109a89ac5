//! The digest of a configuration.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 of the JSON text of a value, its keys in their own order (configurations
/// are sorted).
pub fn config_hash(config: &Value) -> String {
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
}
