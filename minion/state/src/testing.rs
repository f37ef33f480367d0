//! A minion with the functions of all modules, for unit tests.

brine_testing::with_modules!(brine_modules::MODULES);
