//! `kmod`: states of kernel modules.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use crate::kmod;

/// State functions of `kmod`.
pub static FUNCTIONS: Functions<StateContext> = registry!("kmod", [present, absent]);

/// Ensure that a module, or several (`mods`), are loaded; with `persist` also at boot.
///
/// SLS Example:
///
///     br_netfilter:
///       kmod.present:
///         - persist: True
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the module, unless `mods` are given.
    name: String,
    /// Whether the module is also loaded at boot.
    #[default(false)]
    persist: bool,
    /// Names of several modules, as a list.
    #[default]
    mods: Value,
) -> CallResult {
    let mods = modules(&name, &mods);
    let mut have = kmod::loaded(&context.call)?;
    if persist {
        let persistent_modules = kmod::persistent_modules(&context.call)?;
        have.retain(|module| persistent_modules.contains(module));
    }
    let (there, missing): (Vec<String>, Vec<String>) = mods.into_iter().partition(|module| have.contains(module));
    let mut sentences = Vec::new();
    sentences.extend(listed(&there, "is already present", "are already present"));
    if missing.is_empty() {
        return Ok(StateReturn::ok(&name, sentences.join("\n")).into());
    }
    if context.test {
        sentences.extend(listed(&missing, "is set to be loaded", "are set to be loaded"));
        return Ok(StateReturn::predicted(&name, sentences.join("\n")).into());
    }
    let loadable = kmod::loadable();
    let (can, cannot): (Vec<String>, Vec<String>) = missing.into_iter().partition(|module| loadable.contains(module));
    sentences.extend(listed(&cannot, "is unavailable", "are unavailable"));
    let work = Progress::of(context, &can, "kmod.load", map! {"persist" => persist}, "loaded")?;
    sentences.extend(work.report("Loaded", "load"));
    let result = cannot.is_empty() && work.failed.is_empty();
    let outcome = StateReturn { result: Some(result), ..StateReturn::ok(&name, sentences.join("\n")) };
    Ok(outcome.with_changes(work.changes).into())
}

/// Ensure that a module, or several (`mods`), are not loaded; with `persist` not at boot either.
///
/// SLS Example:
///
///     unused_modules:
///       kmod.absent:
///         - persist: True
///         - mods:
///           - floppy
///           - pcspkr
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the module, unless `mods` are given.
    name: String,
    /// Whether the module is not loaded at boot any more either.
    #[default(false)]
    persist: bool,
    /// With `persist`, whether the module's line is commented out instead of removed.
    #[default(true)]
    comment: bool,
    /// Names of several modules, as a list.
    #[default]
    mods: Value,
) -> CallResult {
    let mods = modules(&name, &mods);
    let mut have = kmod::loaded(&context.call)?;
    if persist {
        have.extend(kmod::persistent_modules(&context.call)?);
    }
    let there: Vec<String> = mods.iter().filter(|module| have.contains(*module)).cloned().collect();
    if there.is_empty() {
        let sentences = listed(&mods, "is already removed", "are already removed").unwrap_or_default();
        return Ok(StateReturn::ok(&name, sentences).into());
    }
    if context.test {
        let sentences = listed(&there, "is set to be removed", "are set to be removed").unwrap_or_default();
        return Ok(StateReturn::predicted(&name, sentences).into());
    }
    let how = map! {"persist" => persist, "comment" => comment};
    let work = Progress::of(context, &there, "kmod.remove", how, "removed")?;
    let sentences = work.report("Removed", "remove").join("\n");
    let outcome = StateReturn { result: Some(work.failed.is_empty()), ..StateReturn::ok(&name, sentences) };
    Ok(outcome.with_changes(work.changes).into())
}

fn modules(name: &str, mods: &Value) -> Vec<String> {
    match mods {
        Value::List(mods) => mods.iter().map(ToString::to_string).collect(),
        _ => vec![name.to_owned()],
    }
}

/// Returns the sentence on these modules, in the singular or plural; `None` for no modules.
fn listed(modules: &[String], one: &str, several: &str) -> Option<String> {
    match modules {
        [] => None,
        [module] => Some(format!("Kernel module {module} {one}")),
        all => Some(format!("Kernel modules {} {several}", all.join(", "))),
    }
}

/// Results of changing modules.
struct Progress {
    changes: Map,
    changed: Vec<String>,
    /// The failed modules, each with the error output if there is any.
    failed: Vec<(String, Option<String>)>,
}

impl Progress {
    fn of(
        context: &StateContext,
        modules: &[String],
        function: &str,
        how: Map,
        change: &str,
    ) -> Result<Self, CallError> {
        let mut work = Progress { changes: Map::new(), changed: Vec::new(), failed: Vec::new() };
        for module in modules {
            // An earlier module may have loaded this one as a dependency.
            if work.changes.contains_key(module.as_str()) {
                work.changed.push(module.clone());
                continue;
            }
            let args = Args { positional: vec![module.into()], keyword: how.clone() };
            match context.call.call(function, args)? {
                Value::List(changed) if !changed.is_empty() => {
                    work.changes.extend(changed.into_iter().map(|module| (module, change.into())));
                    work.changed.push(module.clone());
                }
                Value::List(_) => work.failed.push((module.clone(), None)),
                complaint => work.failed.push((module.clone(), Some(complaint.to_string()))),
            }
        }
        Ok(work)
    }

    fn report(&self, participle: &str, verb: &str) -> Vec<String> {
        let names = |modules: &[String]| {
            let plural = if modules.len() == 1 { "" } else { "s" };
            (!modules.is_empty()).then(|| format!("kernel module{plural} {}", modules.join(", ")))
        };
        let silent: Vec<String> =
            self.failed.iter().filter(|(_, why)| why.is_none()).map(|(module, _)| module.clone()).collect();
        let mut sentences = Vec::new();
        sentences.extend(names(&self.changed).map(|names| format!("{participle} {names}")));
        sentences.extend(names(&silent).map(|names| format!("Failed to {verb} {names}")));
        for (module, why) in &self.failed {
            sentences.extend(why.iter().map(|why| format!("Failed to {verb} kernel module {module}: {why}")));
        }
        sentences
    }
}
