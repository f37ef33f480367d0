//! `wheel.file_roots`: the files in the directories of the option `file_roots`. Paths stay inside of their root.

use brine_function::{CallResult, Function, function, registry};

use super::{WheelContext, roots};

/// Wheel functions of `file_roots`.
pub static FUNCTIONS: &[Function<WheelContext>] = registry!("file_roots", [find, list_env, list_roots, read, write]);

/// Return the files of a path in all roots of an environment, each as text (`txt`) or binary (`bin`).
///
/// path: the path below a root. saltenv: the environment (`base`).
#[function]
pub fn find(context: &WheelContext, path: String, #[default("base".into())] saltenv: String) -> CallResult {
    roots::find(&context.host.file_roots(), &path, &saltenv)
}

/// Return all files and directories of an environment, by root. Links are not followed.
///
/// saltenv: the environment (`base`).
#[function]
pub fn list_env(context: &WheelContext, #[default("base".into())] saltenv: String) -> CallResult {
    roots::list_env(&context.host.file_roots(), &saltenv)
}

/// Return all files and directories of all environments.
#[function]
pub fn list_roots(context: &WheelContext) -> CallResult {
    roots::list_roots(&context.host.file_roots())
}

/// Return the content of the text files of a path in all roots of an environment.
///
/// path: the path below a root. saltenv: the environment (`base`).
#[function]
pub fn read(context: &WheelContext, path: String, #[default("base".into())] saltenv: String) -> CallResult {
    roots::read(&context.host.file_roots(), &path, &saltenv)
}

/// Write a file into a root of an environment, and create its directories.
///
/// data: the content. path: the path below the root. saltenv: the environment (`base`). index: the position of the root
/// in the list of the environment (0).
#[function]
pub fn write(
    context: &WheelContext,
    data: String,
    path: String,
    #[default("base".into())] saltenv: String,
    #[default(0)] index: usize,
) -> CallResult {
    roots::write(&context.host.file_roots(), &data, (&path, &saltenv, index), true)
}
