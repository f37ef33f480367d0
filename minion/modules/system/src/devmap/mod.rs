//! `devmap`: multipath devices of the device mapper.

use std::path::Path;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::Program;
use brine_host::programs::{argument, program};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `devmap`.
pub static FUNCTIONS: Functions<Context> = registry!("devmap", [multipath_list, multipath_flush]);

/// Return the multipath devices, as `multipath -l` lists them.
///
/// CLI Example:
///
///     salt '*' devmap.multipath_list
#[function]
pub fn multipath_list(context: &Context) -> CallResult {
    lines(context, &["multipath".to_owned(), "-l".to_owned()])
}

/// Remove a multipath device that is not in use.
///
/// CLI Example:
///
///     salt '*' devmap.multipath_flush /dev/mapper/mpath1
#[function]
pub fn multipath_flush(
    context: &Context,
    /// Name of the device.
    device: String,
) -> CallResult {
    if !Path::new(&device).exists() {
        return Ok(format!("{device} does not exist").into());
    }
    lines(context, &["multipath".to_owned(), "-f".to_owned(), argument(&device)?])
}

fn lines(context: &Context, words: &[String]) -> CallResult {
    let output = context.run_program(&Program { merge: true, ..program(words, &[]) }).map_err(CallError::execution)?;
    context.set_retcode(output.retcode);
    Ok(output.stdout.lines().collect())
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;
    use crate::testing::{Scripted, context_with};

    #[test]
    fn devices_are_listed_and_flushed() {
        let programs =
            Scripted::new("$ multipath -l\n| mpath1 dm-0\n| size=1G\n$ multipath -f /dev/null\n! in use\n= 1");
        let context = context_with(map! {"os_family" => "Debian"}, programs.clone());
        assert_eq!(multipath_list(&context).unwrap(), list!["mpath1 dm-0", "size=1G"]);
        assert_eq!(multipath_flush(&context, "/dev/null".into()).unwrap(), list!["in use"]);
        assert_eq!(multipath_flush(&context, "/dev/none".into()).unwrap(), "/dev/none does not exist".into());
        assert_eq!(programs.ran(), "multipath -l\nmultipath -f /dev/null");
    }
}
