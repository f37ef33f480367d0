//! A minion with the functions of this crate, for unit tests.

use brine_context::Modules;

static MODULES: Modules = Modules(&[brine_modules_files::MODULES, crate::MODULES]);

brine_testing::with_modules!(MODULES);
