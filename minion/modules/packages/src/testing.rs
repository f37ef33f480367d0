//! A minion with the functions of this crate and of the module crates it depends on, for unit tests.

use brine_context::Modules;

static MODULES: Modules = Modules(&[brine_modules_files::MODULES, brine_modules_system::MODULES, crate::MODULES]);

brine_testing::with_modules!(MODULES);
