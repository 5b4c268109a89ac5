//! Identity of a subsystem and its namespaces. The identity is given from outside.

use crate::MediaShape;

/// Maximum number of bytes of an NVMe Qualified Name (Base 4.7).
const NQN_MAX: usize = 223;

/// Name of the discovery service (Base 4.7).
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Error for text that an identity cannot have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdentityError {
    /// Field of the identity.
    pub field: &'static str,
    /// Reason.
    pub why: &'static str,
}

impl std::fmt::Display for IdentityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}

impl std::error::Error for IdentityError {}

/// NVMe Qualified Name of a host or a subsystem (Base 4.7).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Nqn(String);

impl Nqn {
    /// Checks a name, and returns it as a qualified name.
    ///
    /// # Errors
    /// Returns an error unless the name begins with `nqn.` and has at most 223 bytes.
    pub fn new(name: &str) -> Result<Nqn, IdentityError> {
        let error = |why| IdentityError { field: "NQN", why };
        if !name.starts_with("nqn.") {
            return Err(error("the name must begin with `nqn.`"));
        }
        if name.len() > NQN_MAX {
            return Err(error("the name must have at most 223 bytes"));
        }
        if name.contains('\0') {
            return Err(error("the name must not have a zero byte"));
        }
        Ok(Nqn(name.into()))
    }

    /// Returns the name before the first zero byte of a field of 256 bytes, or `None` if the name
    /// is not valid.
    pub(crate) fn from_field(field: &[u8]) -> Option<Nqn> {
        let end = field.iter().position(|&byte| byte == 0)?;
        Nqn::new(std::str::from_utf8(&field[..end]).ok()?).ok()
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Identity of a subsystem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Serial number: at most 20 printable ASCII characters.
    pub serial: String,
    /// Model number: at most 40 printable ASCII characters.
    pub model: String,
    /// Firmware revision: at most 8 printable ASCII characters.
    pub firmware: String,
    /// Name of the subsystem.
    pub nqn: Nqn,
    /// Names of the namespace.
    pub namespace: NamespaceNames,
}

/// Names of a namespace (Base 4.5.4, 4.5.5), each as the bytes that Identify returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NamespaceNames {
    /// IEEE Extended Unique Identifier, or zeros if there is none.
    pub eui64: [u8; 8],
    /// Namespace Globally Unique Identifier, or zeros if there is none.
    pub nguid: [u8; 16],
}

impl Identity {
    /// Checks the texts.
    ///
    /// # Errors
    /// Returns the first field that is too long or not printable ASCII.
    pub fn check(&self) -> Result<(), IdentityError> {
        let texts = [
            ("serial", &self.serial, 20),
            ("model", &self.model, 40),
            ("firmware", &self.firmware, 8),
        ];
        for (field, text, max) in texts {
            if text.len() > max {
                let why = "a serial number has at most 20 characters, a model at most 40, and a \
                           firmware revision at most 8";
                return Err(IdentityError { field, why });
            }
            if !text.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
                return Err(IdentityError {
                    field,
                    why: "the text must have only printable ASCII characters",
                });
            }
        }
        Ok(())
    }
}

/// A namespace: its names, and the shape of its media.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Namespace {
    /// Names of the namespace.
    pub names: NamespaceNames,
    /// Shape of the media.
    pub shape: MediaShape,
}
