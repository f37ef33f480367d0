//! The runner functions of this program, for `sys.runner_doc` and similar functions. A minion runs none of them, and
//! its crates do not depend on the master's: the binary, which contains both, declares them.

use std::sync::OnceLock;

use brine_function::{Functions, Registry};

/// Returns the declarations of the runner functions, module by module.
type Declare = fn() -> Vec<Functions<()>>;

static DECLARE: OnceLock<Declare> = OnceLock::new();
static DECLARED: OnceLock<Registry<()>> = OnceLock::new();

/// Sets the runner functions of this program; later calls have no effect. `list` is called on first use.
pub fn declare(list: Declare) {
    _ = DECLARE.set(list);
}

/// Returns the declared runner functions; none if the program has declared none.
pub fn declared() -> &'static Registry<()> {
    DECLARED.get_or_init(|| {
        let lists = DECLARE.get().map(|list| list()).unwrap_or_default();
        // Leaked: like the functions themselves, they are needed until the process ends.
        let lists: &'static [Functions<()>] = lists.leak();
        Registry::new(&lists.iter().collect::<Vec<_>>())
    })
}
