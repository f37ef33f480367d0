//! The functions of all kinds, as far as the documentation needs them.

use brine_function::{Function, Functions, Registry};
use brine_master_runners::{runner, wheel};
use brine_modules::MODULES;

use super::functions::{EXECUTION, Kind, RUNNERS, STATES, WHEEL, section, summary};

/// A function of any kind.
pub struct Known {
    /// The kind.
    pub kind: &'static Kind,
    /// The module.
    pub module: &'static str,
    /// The name with its module.
    pub name: String,
    text: Box<dyn Fn(bool) -> String>,
}

impl Known {
    /// Returns the section of the function.
    pub fn section(&self) -> String {
        (self.text)(true)
    }

    /// Returns the first paragraph of the documentation.
    pub fn summary(&self) -> String {
        (self.text)(false)
    }
}

/// Returns all functions: execution functions, states, runners and wheel functions.
pub fn all() -> Vec<Known> {
    let mut all = of_kind(&EXECUTION, &MODULES.functions());
    all.extend(of_kind(&STATES, &MODULES.states()));
    all.extend(of_kind(&RUNNERS, runner::MODULES));
    all.extend(of_kind(&WHEEL, wheel::MODULES));
    all
}

fn of_kind<C>(kind: &'static Kind, modules: &[&'static Functions<C>]) -> Vec<Known> {
    let describe = |function: &'static Function<C>| Known {
        kind,
        module: function.module,
        name: function.full_name(),
        text: Box::new(move |is_whole| if is_whole { section(kind, function) } else { summary(function) }),
    };
    Registry::new(modules).iter().map(describe).collect()
}
