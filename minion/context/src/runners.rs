//! The runner functions of this program, which `sys.runner_doc` and the like name. A minion runs none, and its crates do not
//! know the master's: the program, which has both, declares them.

use std::sync::OnceLock;

use brine_function::{Function, Registry};

/// Returns the declarations of the runner functions, a list for each module.
type Declare = fn() -> Vec<Vec<Function<()>>>;

static DECLARE: OnceLock<Declare> = OnceLock::new();
static DECLARED: OnceLock<Registry<()>> = OnceLock::new();

/// Sets the runner functions of this program. The first call counts; `list` is called when they are first needed.
pub fn declare(list: Declare) {
    _ = DECLARE.set(list);
}

/// Returns the declared runner functions; none if the program has declared none.
pub fn declared() -> &'static Registry<()> {
    DECLARED.get_or_init(|| {
        let lists = DECLARE.get().map(|list| list()).unwrap_or_default();
        // They are needed until the process ends, as the functions themselves.
        let lists: Vec<&'static [Function<()>]> = lists.into_iter().map(|list| &*list.leak()).collect();
        Registry::new(&lists)
    })
}
