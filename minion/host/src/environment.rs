//! The environment of child processes: that of this process, overridden by the changes of `environ.setenv`.
//!
//! Changes are stored separately and passed to each command, because changing the environment of a multi-threaded
//! process is unsafe. Each job has its own changes, which end with it, as in Salt, where a job is a process.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;

/// Variables that were set, or removed (`None`).
type Changes = BTreeMap<String, Option<String>>;

/// The changes outside jobs: those of `salt-call`, and of the daemons themselves.
static PROCESS: LazyLock<Environment> = LazyLock::new(Environment::default);

thread_local! {
    /// The changes of the job that this thread works for.
    static JOB: RefCell<Option<Environment>> = const { RefCell::new(None) };
}

/// The changes of one job over the environment of the process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Environment(Arc<RwLock<Changes>>);

impl Environment {
    /// Returns the changes of the job that this thread works for, to pass them to another thread of that job.
    pub fn current() -> Self {
        JOB.with_borrow(Option::clone).unwrap_or_else(|| PROCESS.clone())
    }

    /// Calls a function with these changes in effect on this thread.
    pub fn run<T>(&self, call: impl FnOnce() -> T) -> T {
        /// Restores the earlier changes on drop, also after a panic.
        struct RestoreOnDrop(Option<Environment>);
        impl Drop for RestoreOnDrop {
            fn drop(&mut self) {
                JOB.set(self.0.take());
            }
        }
        let _before = RestoreOnDrop(JOB.replace(Some(self.clone())));
        call()
    }
}

/// Returns the value of a variable.
pub fn variable(name: &str) -> Option<String> {
    Environment::current().0.read().get(name).cloned().unwrap_or_else(|| std::env::var(name).ok())
}

/// Returns all variables.
pub fn variables() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let mut variables: BTreeMap<String, String> =
        std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
    for (name, value) in changed() {
        match value {
            Some(value) => _ = variables.insert(name, value),
            None => _ = variables.remove(&name),
        }
    }
    variables
}

/// Sets a variable, or removes it.
pub fn set(name: &str, value: Option<&str>) {
    Environment::current().0.write().insert(name.to_owned(), value.map(str::to_owned));
}

/// Returns the changes that are applied to the environment of commands: `None` for a removed variable.
pub fn changed() -> BTreeMap<String, Option<String>> {
    Environment::current().0.read().clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_a_job_end_with_it() {
        let job = Environment::default();
        job.run(|| {
            set("BRINE_JOB", Some("one"));
            let same = Environment::current();
            let seen = std::thread::spawn(move || same.run(|| variable("BRINE_JOB"))).join().unwrap();
            assert_eq!(seen.as_deref(), Some("one"), "a thread of the same job");
        });
        assert_eq!(variable("BRINE_JOB"), None);
        Environment::default().run(|| assert_eq!(variable("BRINE_JOB"), None, "another job"));
        job.run(|| assert_eq!(variable("BRINE_JOB").as_deref(), Some("one")));
    }

    #[test]
    fn panic_leaves_no_changes_behind() {
        let call = || {
            Environment::default().run(|| {
                set("BRINE_PANIC", Some("x"));
                panic!("of the test");
            })
        };
        assert!(std::panic::catch_unwind(call).is_err());
        assert_eq!(variable("BRINE_PANIC"), None);
    }
}
