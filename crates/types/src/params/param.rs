//! A parameter as a typed constant: its declaration, and the type of its value.

use crate::{ConfigError, Dur, ParamDef, ParamKind, Value};
use std::marker::PhantomData;

/// A declared parameter whose value is a `T`. [`Params::get`](crate::Params::get) accepts this
/// constant instead of the text of a key.
///
/// A parameter without [`Param::or`] has no default, so every drive must set its value.
pub struct Param<T> {
    /// The declaration, to be listed by the part that declares the parameter.
    pub def: ParamDef,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Param<T> {
    fn clone(&self) -> Param<T> {
        *self
    }
}

impl<T> Copy for Param<T> {}

/// A type that the value of a parameter may have.
pub trait ParamType {
    /// The type that [`Params::get`](crate::Params::get) returns.
    type Read<'a>;

    /// Returns the value as this type, or `None` if the value is of another kind.
    fn read(value: &Value) -> Option<Self::Read<'_>>;
}

/// A type of whole numbers that a parameter may have.
pub trait Whole: ParamType {
    /// The largest value.
    const MAX: u64;
}

/// The type of a parameter whose value is any text, or one of several names.
pub struct Text;

impl<T> Param<T> {
    const fn new(key: &'static str, kind: ParamKind, doc: &'static str) -> Param<T> {
        Param { def: ParamDef { key, kind, default: None, doc }, value: PhantomData }
    }

    /// Returns the same parameter with a default, spelt as in a file.
    pub const fn or(mut self, default: &'static str) -> Param<T> {
        self.def.default = Some(default);
        self
    }

    /// Parses a value of the parameter.
    ///
    /// # Errors
    /// Returns the errors of [`ParamDef::parse`].
    pub fn parse(&self, text: &str) -> Result<T, ConfigError>
    where
        for<'a> T: ParamType<Read<'a> = T>,
    {
        Ok(T::read(&self.def.parse(text)?).expect("a declaration and its type are made together"))
    }

    /// Returns the full name, `section.key`.
    pub const fn key(&self) -> &'static str {
        self.def.key
    }
}

impl<T: Whole> Param<T> {
    /// Declares a whole number from `low` to `high`.
    ///
    /// # Panics
    /// Panics while the program is compiled if `high` does not fit the type.
    pub const fn int(key: &'static str, low: u64, high: u64, doc: &'static str) -> Param<T> {
        assert!(high <= T::MAX, "the bound fits the type");
        Param::new(key, ParamKind::Int(low, high), doc)
    }

    /// Declares a number of bytes from `low` to `high`, such as `4096`, `16KiB` or `2GB`.
    ///
    /// # Panics
    /// Panics as [`Param::int`] does.
    pub const fn bytes(key: &'static str, low: u64, high: u64, doc: &'static str) -> Param<T> {
        assert!(high <= T::MAX, "the bound fits the type");
        Param::new(key, ParamKind::Bytes(low, high), doc)
    }
}

impl Param<u64> {
    /// Declares a rate in bytes a second, such as `200MB`.
    pub const fn rate(key: &'static str, doc: &'static str) -> Param<u64> {
        Param::new(key, ParamKind::Rate, doc)
    }
}

impl Param<Dur> {
    /// Declares a duration, such as `25us` or `1.5ms`.
    pub const fn time(key: &'static str, doc: &'static str) -> Param<Dur> {
        Param::new(key, ParamKind::Time, doc)
    }
}

impl Param<f64> {
    /// Declares a number from `low` to `high`.
    pub const fn ratio(key: &'static str, low: f64, high: f64, doc: &'static str) -> Param<f64> {
        Param::new(key, ParamKind::Ratio(low, high), doc)
    }
}

impl Param<bool> {
    /// Declares a switch, `true` or `false`.
    pub const fn flag(key: &'static str, doc: &'static str) -> Param<bool> {
        Param::new(key, ParamKind::Bool, doc)
    }
}

impl Param<Text> {
    /// Declares a choice of one of `names`.
    pub const fn choice(
        key: &'static str,
        names: &'static [&'static str],
        doc: &'static str,
    ) -> Param<Text> {
        Param::new(key, ParamKind::Choice(names), doc)
    }

    /// Declares a choice of one of the names that `names` returns at run time.
    pub const fn name(
        key: &'static str,
        names: fn() -> Vec<&'static str>,
        doc: &'static str,
    ) -> Param<Text> {
        Param::new(key, ParamKind::Name(names), doc)
    }

    /// Declares a parameter that names a part of this kind. A registry checks the name.
    pub const fn part(key: &'static str, kind: &'static str, doc: &'static str) -> Param<Text> {
        Param::new(key, ParamKind::Part(kind), doc)
    }

    /// Declares any text.
    pub const fn text(key: &'static str, doc: &'static str) -> Param<Text> {
        Param::new(key, ParamKind::Text, doc)
    }
}

impl ParamType for u64 {
    type Read<'a> = u64;

    fn read(value: &Value) -> Option<u64> {
        if let Value::Int(n) = value { Some(*n) } else { None }
    }
}

impl Whole for u64 {
    const MAX: u64 = u64::MAX;
}

impl ParamType for u32 {
    type Read<'a> = u32;

    fn read(value: &Value) -> Option<u32> {
        u64::read(value)?.try_into().ok()
    }
}

impl Whole for u32 {
    const MAX: u64 = u32::MAX as u64;
}

impl ParamType for Dur {
    type Read<'a> = Dur;

    fn read(value: &Value) -> Option<Dur> {
        if let Value::Time(time) = value { Some(*time) } else { None }
    }
}

impl ParamType for f64 {
    type Read<'a> = f64;

    fn read(value: &Value) -> Option<f64> {
        if let Value::Ratio(ratio) = value { Some(*ratio) } else { None }
    }
}

impl ParamType for bool {
    type Read<'a> = bool;

    fn read(value: &Value) -> Option<bool> {
        if let Value::Bool(flag) = value { Some(*flag) } else { None }
    }
}

impl ParamType for Text {
    type Read<'a> = &'a str;

    fn read(value: &Value) -> Option<&str> {
        if let Value::Text(text) = value { Some(text) } else { None }
    }
}
