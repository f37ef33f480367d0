//! The engine's environment, which all templates share: its filters, tests, functions and syntax.

use std::cell::LazyCell;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value as JinjaValue;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use super::syntax::Called;
use super::{call, data, filters, guard, methods, operators};

/// The global that hides a variable of an importing template from an imported one.
pub(super) const HIDDEN: &str = "__undefined__";

/// The filters, tests and globals that all templates share. A copy is a few reference counts.
pub(super) static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

/// Returns the engine's syntax with these options for whitespace around blocks.
pub(super) fn syntax_config(trim_blocks: bool, lstrip_blocks: bool) -> SyntaxConfig {
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(trim_blocks).lstrip_blocks(lstrip_blocks);
    // The only part that can fail to build is the delimiters, and these are the usual ones.
    syntax.build().unwrap_or_default()
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(syntax_config(false, false));
    environment.set_unknown_method_callback(methods::call);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(data::format);
    // Errors include the undefined expression and its location.
    environment.set_debug(true);
    filters::add_to(&mut environment);
    data::add_to(&mut environment);
    call::add_to(&mut environment);
    operators::add_to(&mut environment);
    environment.add_global(HIDDEN, JinjaValue::UNDEFINED);
    guard::add_to(&mut environment);
    environment
}

/// Returns a function that returns whether there is a filter or a test of a name. All names of a template share one state
/// of the engine.
pub(super) fn known_names() -> impl Fn(Called, &str) -> bool {
    let state = LazyCell::new(|| ENVIRONMENT.empty_state());
    move |called, name| match called {
        Called::Filter => minijinja::tests::is_filter(&state, name),
        Called::Test => minijinja::tests::is_test(&state, name),
    }
}

/// Adds a test for names of filters or tests; values other than strings are not names.
/// Returns whether a name is a global.
pub(super) fn is_global(name: &str) -> bool {
    ENVIRONMENT.globals().any(|(global, _)| global == name)
}
