//! `kmod`: kernel modules, loaded now and at boot.

pub(crate) mod state;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_system::files;
use brine_value::{Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `kmod`.
pub static FUNCTIONS: Functions<Context> =
    registry!("kmod", [available, check_available, lsmod, mod_list, is_loaded, load, remove]);

/// Return all modules that this kernel can load, and its built-in ones.
///
/// CLI Example:
///
///     salt '*' kmod.available
#[function]
pub fn available(_context: &Context) -> CallResult {
    Ok(loadable().into_iter().collect())
}

/// Return whether this kernel can load a module.
///
/// CLI Example:
///
///     salt '*' kmod.check_available kvm
#[function]
pub fn check_available(
    _context: &Context,
    /// Name of the module.
    r#mod: String,
) -> CallResult {
    Ok(loadable().contains(&r#mod).into())
}

/// Return the loaded modules, with their sizes and dependents.
///
/// CLI Example:
///
///     salt '*' kmod.lsmod
#[function]
pub fn lsmod(context: &Context) -> CallResult {
    let output = run(context, &["lsmod".into()], &[])?;
    let entry = |line: &str| {
        let mut words = line.split_whitespace();
        let (module, size, count) = (words.next()?, words.next()?, words.next()?);
        let needed_by: Value = words.next().into_iter().flat_map(|list| list.split(',')).collect();
        let report = map! {"size" => size, "module" => module, "depcount" => count, "deps" => needed_by};
        (module != "Module").then(|| Value::Map(report))
    };
    Ok(output.stdout.lines().filter_map(entry).collect())
}

/// Return the names of the loaded modules, or with `only_persist` of those loaded at boot.
///
/// CLI Example:
///
///     salt '*' kmod.mod_list
#[function]
pub fn mod_list(
    context: &Context,
    /// Whether only modules that are loaded at boot are listed.
    #[default(false)]
    only_persist: bool,
) -> CallResult {
    let names = if only_persist { persistent_modules(context)? } else { loaded(context)? };
    Ok(names.into_iter().collect())
}

/// Return whether a module is loaded.
///
/// CLI Example:
///
///     salt '*' kmod.is_loaded kvm
#[function]
pub fn is_loaded(
    context: &Context,
    /// Name of the module.
    r#mod: String,
) -> CallResult {
    Ok(loaded(context)?.contains(&r#mod).into())
}

/// Load a module, and with `persist` also at boot. Returns the modules that were loaded, or the error output of
/// `modprobe`.
///
/// CLI Example:
///
///     salt '*' kmod.load kvm
#[function]
pub fn load(
    context: &Context,
    /// Name of the module.
    r#mod: String,
    /// Whether the module is also loaded at boot.
    #[default(false)]
    persist: bool,
) -> CallResult {
    let before = loaded(context)?;
    if let Some(complaint) = run_on_module(context, "modprobe", &r#mod)? {
        return Ok(format!("Error loading module {mod}: {complaint}").into());
    }
    let mut new: BTreeSet<String> = loaded(context)?.difference(&before).cloned().collect();
    if persist && add_to_file(context, &r#mod)? {
        new.extend(name_of(&r#mod));
    }
    Ok(new.into_iter().collect())
}

/// Unload a module, and with `persist` remove it from those loaded at boot; its line there is deleted, or commented
/// out with `comment`. Returns the modules that were unloaded, or the error output of `rmmod`.
///
/// CLI Example:
///
///     salt '*' kmod.remove kvm
#[function]
pub fn remove(
    context: &Context,
    /// Name of the module.
    r#mod: String,
    /// Whether the change is also made for the next boot.
    #[default(false)]
    persist: bool,
    /// With `persist`, whether the module's line is commented out instead of removed.
    #[default(true)]
    comment: bool,
) -> CallResult {
    let before = loaded(context)?;
    if let Some(complaint) = run_on_module(context, "rmmod", &r#mod)? {
        return Ok(format!("Error removing module {mod}: {complaint}").into());
    }
    let after = loaded(context)?;
    let mut gone: BTreeSet<String> = before.difference(&after).cloned().collect();
    if persist && remove_from_file(context, &r#mod, comment)? {
        gone.extend(name_of(&r#mod));
    }
    Ok(gone.into_iter().collect())
}

/// Runs a program with a module and its options. Returns the error output if the program fails.
fn run_on_module(context: &Context, program: &str, module: &str) -> Result<Option<String>, CallError> {
    let mut words = vec![program.to_owned(), argument(module.trim())?];
    if let Some(argument) = words.pop() {
        words.extend(argument.split_whitespace().map(str::to_owned));
    }
    let output = run(context, &words, &[])?;
    if output.retcode == 0 {
        return Ok(None);
    }
    context.set_retcode(output.retcode);
    Ok(Some(output.stderr))
}

fn name_of(module: &str) -> Option<String> {
    module.split_whitespace().next().map(str::to_owned)
}

/// Returns the modules that this kernel can load.
pub fn loadable() -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    let Ok(release) = files::read_to_string("/proc/sys/kernel/osrelease") else { return modules };
    let mut open = vec![Path::new("/lib/modules").join(release.trim())];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            } else if name == "modules.builtin" {
                modules.extend(files::read_to_string(entry.path()).iter().flat_map(|text| built_in(text)));
            } else {
                modules.extend(name.find(".ko").map(|end| name[..end].replace('-', "_")));
            }
        }
    }
    modules
}

fn built_in(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.rsplit('/').next()?.strip_suffix(".ko"));
    names.map(str::to_owned).collect()
}

/// Returns the loaded modules.
pub fn loaded(context: &Context) -> Result<BTreeSet<String>, CallError> {
    let all = lsmod(context)?;
    let modules = all.as_list().unwrap_or_default().iter();
    Ok(modules.filter_map(|module| module.get("module").map(ToString::to_string)).collect())
}

/// Returns the path of the file of modules that are loaded at boot.
fn file(context: &Context) -> PathBuf {
    let systemd = context.grains().contains_key("systemd");
    if systemd { "/etc/modules-load.d/salt_managed.conf" } else { "/etc/modules" }.into()
}

fn text(context: &Context) -> Result<String, CallError> {
    Ok(files::read_if_exists(file(context)).map_err(CallError::execution)?.unwrap_or_default())
}

/// Returns the modules in the file of modules that are loaded at boot.
pub fn persistent_modules(context: &Context) -> Result<BTreeSet<String>, CallError> {
    Ok(names_in(&text(context)?))
}

fn names_in(text: &str) -> BTreeSet<String> {
    text.lines().filter(|line| !line.trim_start().starts_with('#')).filter_map(name_of).collect()
}

fn write(context: &Context, text: &str) -> Result<(), CallError> {
    files::rewrite(file(context), text.as_bytes(), 0o644).map_err(CallError::execution)
}

/// Adds a module to the file, and returns whether it was missing and can be loaded.
fn add_to_file(context: &Context, module: &str) -> Result<bool, CallError> {
    let text = text(context)?;
    let Some(name) = name_of(module) else { return Ok(false) };
    if names_in(&text).contains(&name) || !loadable().contains(&name) {
        return Ok(false);
    }
    write(context, &with_module(&text, module))?;
    Ok(true)
}

/// Removes a module from the file, and returns whether it was present.
fn remove_from_file(context: &Context, module: &str, comment: bool) -> Result<bool, CallError> {
    let text = text(context)?;
    if !name_of(module).is_some_and(|name| names_in(&text).contains(&name)) {
        return Ok(false);
    }
    write(context, &without_module(&text, module, comment))?;
    Ok(true)
}

/// Returns the text with the line of a module uncommented, or else appended.
fn with_module(text: &str, module: &str) -> String {
    let is_it = |line: &str| line.strip_prefix('#').is_some_and(|rest| rest.trim() == module);
    let exists = text.lines().any(is_it);
    let lines = text.lines().map(|line| if is_it(line) { module } else { line });
    lines.chain((!exists).then_some(module)).flat_map(|line| [line, "\n"]).collect()
}

/// Returns the text with the lines of a module deleted or, with `comment`, commented out.
fn without_module(text: &str, module: &str, comment: bool) -> String {
    let is_it = |line: &str| name_of(line) == name_of(module);
    let lines = text.lines().filter(|line| comment || !is_it(line));
    lines.map(|line| if is_it(line) { format!("#{line}\n") } else { format!("{line}\n") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_persisted_in_a_file() {
        let text = "# loaded at boot\nloop max_loop=8\n# kvm\n";
        assert_eq!(names_in(text).into_iter().collect::<Vec<_>>(), ["loop"]);
        assert_eq!(with_module(text, "kvm"), "# loaded at boot\nloop max_loop=8\nkvm\n");
        assert_eq!(with_module(text, "dummy"), format!("{text}dummy\n"));
        assert_eq!(without_module(text, "loop", true), "# loaded at boot\n#loop max_loop=8\n# kvm\n");
        assert_eq!(without_module(text, "loop", false), "# loaded at boot\n# kvm\n");
        assert_eq!(built_in("kernel/fs/ext4/ext4.ko\nkernel/x/y-z.ko\nbad\n"), ["ext4", "y-z"]);
    }
}
