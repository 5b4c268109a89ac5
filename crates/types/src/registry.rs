//! Registries: explicit lists of named entries. A program may add entries of its own.

use crate::{ConfigError, ParamDef};
use std::any::Any;

/// A part that a registry holds, with a name and parameters of its own.
pub trait Entry: 'static {
    /// The kind of part: `victim policy`.
    const KIND: &'static str;
    /// The key or option that chooses a part: `ftl.victim`.
    const KEY: &'static str;

    /// Returns the name of the part, which is unique in the registry.
    fn name(&self) -> &'static str;

    /// Returns the parameters that the part declares.
    fn params(&self) -> &'static [ParamDef];
}

/// Implements [`Entry`] for a definition with the fields `name` and `params`. If the fourth
/// argument is `none`, the definition needs no field `params` and declares no parameters. Any other
/// fourth argument is a function that returns the parameters.
#[macro_export]
macro_rules! entry {
    ($def:ty, $kind:literal, $key:literal) => {
        $crate::entry!($def, $kind, $key, |def: &$def| def.params);
    };
    ($def:ty, $kind:literal, $key:literal, none) => {
        $crate::entry!($def, $kind, $key, |_: &$def| &[]);
    };
    ($def:ty, $kind:literal, $key:literal, $params:expr) => {
        impl $crate::Entry for $def {
            const KIND: &'static str = $kind;
            const KEY: &'static str = $key;

            fn name(&self) -> &'static str {
                self.name
            }

            fn params(&self) -> &'static [$crate::ParamDef] {
                let params: fn(&$def) -> &'static [$crate::ParamDef] = $params;
                params(self)
            }
        }
    };
}

/// The entries of one kind: the entries of the project, and the entries that a program adds. A
/// registry is a value that is copied. There is no global list.
pub struct Entries<T: 'static> {
    standard: &'static [T],
    added: &'static [&'static T],
}

impl<T> Clone for Entries<T> {
    fn clone(&self) -> Entries<T> {
        *self
    }
}

impl<T> Copy for Entries<T> {}

impl<T: Entry> Entries<T> {
    /// Returns a registry with the entries of the project.
    pub const fn of(standard: &'static [T]) -> Entries<T> {
        Entries { standard, added: &[] }
    }

    /// Returns the same registry with entries of another crate of the project after its own.
    ///
    /// # Panics
    /// Panics if entries were added before.
    pub const fn and(self, more: &'static [&'static T]) -> Entries<T> {
        assert!(self.added.is_empty(), "the project's own entries come first");
        Entries { added: more, ..self }
    }

    /// Returns the same registry with one more entry.
    ///
    /// The longer list is never freed, because a program builds its registries once, when it
    /// starts.
    ///
    /// # Errors
    /// Returns an error if an entry has this name already.
    pub fn with(self, entry: &'static T) -> Result<Entries<T>, ConfigError> {
        let name = entry.name();
        if self.iter().any(|other| other.name() == name) {
            let why = format!(
                "two entries of the registry are called `{name}`: give one of them another name"
            );
            return Err(ConfigError::new(T::KIND, why));
        }
        let added: Vec<&'static T> = self.added.iter().copied().chain([entry]).collect();
        Ok(Entries { added: added.leak(), ..self })
    }

    /// Returns every entry. Added entries come last.
    pub fn iter(self) -> impl Iterator<Item = &'static T> {
        self.standard.iter().chain(self.added.iter().copied())
    }

    /// Returns every name.
    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(T::name).collect()
    }

    /// Returns the entry called `name`.
    ///
    /// # Errors
    /// Returns an error under [`Entry::KEY`] if no part has this name. The error lists the most
    /// similar name and all names that exist.
    pub fn named(self, name: &str) -> Result<&'static T, ConfigError> {
        self.iter()
            .find(|entry| entry.name() == name)
            .ok_or_else(|| ConfigError::unknown(T::KEY, T::KIND, name, &self.names()))
    }
}

/// Registries of more kinds of parts. Each is found by the type of its definitions.
///
/// For example, a map store chooses hash functions, but the crate with the registry of map stores
/// does not use the crate of hash functions. The registry of map stores keeps the registry of hash
/// functions here.
#[derive(Clone, Copy)]
pub struct Kinds(&'static [&'static dyn Kind]);

/// A registry of parts. Only the parts that choose from the registry use this kind.
pub trait Kind: Any + Send + Sync {
    /// Returns the key that chooses a part ([`Entry::KEY`]).
    fn key(&self) -> &'static str;

    /// Returns the parameters that all parts of the kind declare.
    fn params(&self) -> Vec<&'static ParamDef>;

    /// Checks that there is a part called `name`.
    ///
    /// # Errors
    /// Returns the error of [`Entries::named`].
    fn check(&self, name: &str) -> Result<(), ConfigError>;
}

impl<T: Entry + Send + Sync> Kind for Entries<T> {
    fn key(&self) -> &'static str {
        T::KEY
    }

    fn params(&self) -> Vec<&'static ParamDef> {
        self.iter().flat_map(T::params).collect()
    }

    fn check(&self, name: &str) -> Result<(), ConfigError> {
        self.named(name).map(drop)
    }
}

impl Kinds {
    /// Returns a list of registries. Each registry lists parts of another type.
    pub const fn of(kinds: &'static [&'static dyn Kind]) -> Kinds {
        Kinds(kinds)
    }

    /// Returns the registry of a kind, or an empty registry if the kind is unknown.
    pub fn get<T: Entry + Send + Sync>(self) -> Entries<T> {
        let mut found = self.0.iter().filter_map(|&kind| (kind as &dyn Any).downcast_ref());
        found.next().copied().unwrap_or(Entries::of(&[]))
    }

    /// Returns the registry whose parts `key` chooses, or `None` if there is none.
    pub fn chosen_by(self, key: &str) -> Option<&'static dyn Kind> {
        self.0.iter().copied().find(|kind| kind.key() == key)
    }

    /// Returns the same registries with one more part.
    ///
    /// # Errors
    /// Returns an error if another part of the same kind has this name.
    pub fn with<T: Entry + Send + Sync>(self, part: &'static T) -> Result<Kinds, ConfigError> {
        let more: &'static Entries<T> = Box::leak(Box::new(self.get::<T>().with(part)?));
        let others = self.0.iter().copied().filter(|kind| kind.key() != T::KEY);
        let all: Vec<&'static dyn Kind> = others.chain([more as &dyn Kind]).collect();
        Ok(Kinds(all.leak()))
    }
}

/// Returns the entry of a closed list that is called `name`.
///
/// # Errors
/// Returns an error under `key` if no entry has this name. The error calls the entry a `what`, and
/// lists the most similar name and all names that exist.
pub fn by_name<T>(
    all: &'static [T],
    name_of: fn(&T) -> &'static str,
    key: &str,
    what: &str,
    name: &str,
) -> Result<&'static T, ConfigError> {
    all.iter().find(|entry| name_of(entry) == name).ok_or_else(|| {
        ConfigError::unknown(key, what, name, &all.iter().map(name_of).collect::<Vec<_>>())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Part(&'static str);

    impl Entry for Part {
        const KIND: &'static str = "part";
        const KEY: &'static str = "a.part";

        fn name(&self) -> &'static str {
            self.0
        }

        fn params(&self) -> &'static [ParamDef] {
            &[]
        }
    }

    #[test]
    fn an_added_entry_is_like_those_that_were_there() {
        const OWN: Entries<Part> = Entries::of(&[Part("one"), Part("two")]);
        let more = OWN.with(&Part("three")).unwrap();
        assert_eq!(more.names(), ["one", "two", "three"]);
        assert_eq!(more.named("three").unwrap().name(), "three");
        assert_eq!(OWN.names(), ["one", "two"], "the original is unchanged");
        let unknown = more.named("thre").err().unwrap().to_string();
        assert_eq!(
            unknown,
            "a.part: part `thre` is not known; did you mean `three`? (allowed: one, two, three)"
        );
        let twice = more.with(&Part("three")).err().unwrap().to_string();
        assert_eq!(
            twice,
            "part: two entries of the registry are called `three`: give one of them another name"
        );
    }

    #[test]
    fn a_kind_is_found_by_its_type_and_by_its_key() {
        const OWN: Entries<Part> = Entries::of(&[Part("one")]);
        const KINDS: Kinds = Kinds::of(&[&OWN]);
        let more = KINDS.with(&Part("two")).unwrap();
        assert_eq!(more.get::<Part>().names(), ["one", "two"]);
        assert_eq!(KINDS.get::<Part>().names(), ["one"], "the original is unchanged");
        let unknown = more.chosen_by("a.part").unwrap().check("tow").unwrap_err().to_string();
        assert!(unknown.contains("did you mean `two`?"), "{unknown}");
        assert!(more.chosen_by("a.party").is_none());
        assert!(more.with(&Part("one")).is_err());
        let first = Kinds::of(&[]).with(&Part("one")).unwrap();
        assert_eq!(first.get::<Part>().names(), ["one"], "a part of a new kind");
    }
}
