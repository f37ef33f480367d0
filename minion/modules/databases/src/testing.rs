//! A minion with the functions of this crate, for unit tests.

use brine_context::Modules;

static MODULES: Modules = Modules(&[crate::MODULES]);

brine_testing::with_modules!(MODULES);
