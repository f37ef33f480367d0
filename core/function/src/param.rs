//! The parameters of functions: their descriptions, and structs of arguments.

use brine_value::{FromValue, Value};

use crate::{Binder, CallError};

/// One parameter of a function.
#[derive(Clone, Copy)]
pub struct Param {
    /// The name.
    pub name: &'static str,
    /// How it takes values.
    pub kind: ParamKind,
    /// The expected type, such as `a mapping`.
    pub expected: &'static str,
    /// Documentation; empty for none.
    pub doc: &'static str,
}

impl Param {
    /// Returns a required parameter.
    pub const fn required<T: FromValue>(name: &'static str, doc: &'static str) -> Self {
        Param { name, kind: ParamKind::Required, expected: T::EXPECTED, doc }
    }

    /// Returns an optional parameter.
    pub const fn optional<T: FromValue>(name: &'static str, default: fn() -> Value, doc: &'static str) -> Self {
        Param { name, kind: ParamKind::Optional(default), expected: T::EXPECTED, doc }
    }

    /// Returns `*args`.
    pub const fn rest(name: &'static str, doc: &'static str) -> Self {
        Param { name, kind: ParamKind::Rest, expected: "anything", doc }
    }

    /// Returns `**kwargs`.
    pub const fn keywords(name: &'static str, doc: &'static str) -> Self {
        Param { name, kind: ParamKind::Keywords, expected: "anything", doc }
    }
}

/// The arguments of a function as a struct: implemented by `#[derive(Args)]`.
pub trait Arguments: Sized {
    /// The fields as parameters, in order.
    const PARAMS: &'static [Param];

    /// Binds the arguments of a call to the fields.
    fn bind(bound: &mut Binder) -> Result<Self, CallError>;
}

/// How a parameter takes values.
#[derive(Clone, Copy)]
pub enum ParamKind {
    /// Must be given.
    Required,
    /// May be left out.
    Optional(fn() -> Value),
    /// May be left out; the default is known only while the program runs.
    Given(&'static Value),
    /// `*args`: takes all further positional values.
    Rest,
    /// `**kwargs`: takes all further keyword values.
    Keywords,
}

impl ParamKind {
    /// Returns the rank in the order of parameters: named ones, then `*args`, then `**kwargs`.
    const fn rank(self) -> u8 {
        match self {
            ParamKind::Required | ParamKind::Optional(_) | ParamKind::Given(_) => 0,
            ParamKind::Rest => 1,
            ParamKind::Keywords => 2,
        }
    }
}

/// Returns the number of parameters in these lists. Used by the macros.
#[doc(hidden)]
pub const fn count(parts: &[&[Param]]) -> usize {
    let (mut count, mut i) = (0, 0);
    while i < parts.len() {
        count += parts[i].len();
        i += 1;
    }
    count
}

/// Joins lists of parameters, `N` in all. Used by the macros.
///
/// # Panics
/// Fails to compile where named parameters do not come first, then at most one `*args` and at most one `**kwargs`.
#[doc(hidden)]
pub const fn joined<const N: usize>(parts: &[&[Param]]) -> [Param; N] {
    let mut all = [Param { name: "", kind: ParamKind::Required, expected: "", doc: "" }; N];
    let (mut next, mut i) = (0, 0);
    while i < parts.len() {
        let mut k = 0;
        while k < parts[i].len() {
            let param = parts[i][k];
            if next > 0 {
                let (before, rank) = (all[next - 1].kind.rank(), param.kind.rank());
                assert!(
                    before < rank || (before == rank && rank == 0),
                    "expected named parameters, then at most one #[rest], then at most one #[keywords]"
                );
            }
            all[next] = param;
            next += 1;
            k += 1;
        }
        i += 1;
    }
    all
}
