//! The checks of a minion's options. The crate of the execution functions does not depend on that of the daemon, which
//! knows them: the binary, which contains both, declares them.

use std::sync::OnceLock;

use brine_check::Finding;
use brine_config::MinionConfig;

/// Returns the findings about the options of a minion.
type Check = fn(&MinionConfig) -> Vec<Finding>;

static CHECK: OnceLock<Check> = OnceLock::new();

/// Sets the checks of this program; later calls have no effect.
pub fn declare(check: Check) {
    _ = CHECK.set(check);
}

/// Returns the findings about options; none if the program has declared no checks.
pub fn check(config: &MinionConfig) -> Vec<Finding> {
    CHECK.get().map(|check| check(config)).unwrap_or_default()
}
