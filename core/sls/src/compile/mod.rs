//! From SLS files to what is run: high data (ids, states, arguments) and low chunks (one call each, in
//! order).
//!
//! | step | file |
//! |---|---|
//! | render each SLS with what it includes, bring every way to write a state into one form | `load.rs` |
//! | apply `extend`, `use`, the `*_in` requisites and `exclude` | `extend.rs` |
//! | check the structure | `verify.rs` |
//! | make the chunks | `low.rs` |
//! | look up requisites, order | `graph.rs` |
//!
//! Nothing here runs anything or knows how an SLS is rendered: an [`SlsSource`] gives the data. Errors are
//! texts in Salt's words, as Salt returns them: a list in the place of results.

mod extend;
mod graph;
mod high;
mod load;
mod low;
mod requisite;
mod verify;

pub use high::HighData;
pub use load::{SlsSource, load};
pub use low::{Chunk, Dependency, Listener, Low, Step};
pub use requisite::{Reference, Requisite, RequisiteKind};

/// What the compiler must know of the place where the states will run.
pub struct Target<'a> {
    /// Whether a state module can act on a change that it watches (`mod_watch`). `watch` in other modules
    /// means `require`.
    pub acts_on_watch: &'a dyn Fn(&str) -> bool,
    /// Requisites that are not looked at: `disabled_requisites`.
    pub disabled_requisites: &'a [String],
}

/// Compiles high data to low chunks in the order in which they run. All errors of the first step that has
/// any are told, in Salt's words.
pub fn compile(mut high: HighData, target: &Target) -> Result<Low, Vec<String>> {
    let mut errors = extend::apply_extensions(&mut high, false);
    errors.append(&mut verify::check(&high.states));
    if !errors.is_empty() {
        return Err(errors);
    }
    errors = extend::apply_requisites_in(&mut high, target.disabled_requisites);
    extend::apply_excludes(&mut high);
    if !errors.is_empty() {
        return Err(errors);
    }
    graph::ordered(low::chunks(&high.states, target), target.disabled_requisites)
}

/// As [`compile`], and tells the errors of all steps up to the chunks at once, after those that are known already: this
/// is what `state.show_lowstate` shows.
pub fn compile_to_show(mut high: HighData, mut errors: Vec<String>, target: &Target) -> Result<Low, Vec<String>> {
    errors.append(&mut extend::apply_extensions(&mut high, false));
    errors.append(&mut verify::check(&high.states));
    errors.append(&mut extend::apply_requisites_in(&mut high, target.disabled_requisites));
    extend::apply_excludes(&mut high);
    if !errors.is_empty() {
        return Err(errors);
    }
    graph::ordered(low::chunks(&high.states, target), target.disabled_requisites)
}

/// Compiles high data as it is written, without `extend`, `exclude` and what is written at the other end: this
/// is what `state.show_low_sls` shows.
pub fn compile_as_written(high: &HighData, target: &Target) -> Result<Low, Vec<String>> {
    let errors = verify::check(&high.states);
    if errors.is_empty() {
        graph::ordered(low::chunks(&high.states, target), target.disabled_requisites)
    } else {
        Err(errors)
    }
}

/// Puts low chunks that are given as they are in the order in which they run.
pub fn in_order(chunks: Vec<Chunk>, target: &Target) -> Result<Low, Vec<String>> {
    graph::ordered(chunks, target.disabled_requisites)
}

/// Whether a key belongs to the compiler: `__sls__`, `__env__`, ...
fn is_dunder(key: &Value) -> bool {
    key.as_str().is_some_and(|key| key.starts_with("__"))
}

#[cfg(test)]
mod tests;

use brine_value::Value;
