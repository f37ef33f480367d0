//! `state.apply_plan`: applies states if they change exactly what was planned.

use std::collections::HashMap;

use brine_carriers::{APPLY_PLAN, PLANNED};
use brine_context::Context;
use brine_digest::{Digest, hex};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_job::plan::{BASIS, Outcome, digest_of_value, is_change};
use brine_sls::compile::Low;
use brine_state::{Settings, StateRun};
use brine_value::{Map, Value, map};

use super::{of_highstate, of_sls};

/// Execution functions of `state`.
pub static FUNCTIONS: Functions<Context> = registry!("state", [apply_plan]);

/// The number of states that a refusal names.
const NAMED: usize = 20;
/// The maximum number of files of a directory that a state depends on.
const FILES: usize = 10_000;

/// Apply states that were planned by `salt ... --plan`, and only if they still change exactly what was planned: the states
/// are compiled once, run in test mode and compared, and then run. `salt --apply` calls this function.
///
/// CLI Example:
///
///     salt web1 state.apply_plan state.apply '{digests: {DIGEST: [web1]}}' nginx
#[function(out = "highstate")]
pub fn apply_plan(
    context: &Context,
    /// The planned function: `state.apply`, `state.sls` or `state.highstate`.
    fun: String,
    /// The plan: `digests`, a mapping of digests to the ids of the minions that change in the same way.
    plan: Map,
    /// SLS files, as a list or with commas.
    #[default]
    mods: Value,
    /// Further arguments of the planned function.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let refused = |message: String| {
        Err(CallError::Invocation { function: APPLY_PLAN.into(), message: message.replace('\n', " ") })
    };
    if !PLANNED.contains(&fun.as_str()) {
        return refused(format!("'{fun}' cannot be planned: expected one of {}", PLANNED.join(", ")));
    }
    let id = context.minion.id.as_str();
    let holds = |ids: &Value| ids.as_list().is_some_and(|ids| ids.iter().any(|one| one.as_str() == Some(id)));
    let digests = plan.get("digests").and_then(Value::as_map);
    let mut own = digests.into_iter().flatten().filter(|(_, ids)| holds(ids)).map(|(digest, _)| digest.to_string());
    let (Some(digest), None) = (own.next(), own.next()) else {
        return refused(format!("the minion '{id}' is not part of the plan, and nothing is run: make a new plan"));
    };
    match (fun.as_str(), mods.is_truthy()) {
        ("state.highstate", true) => refused("state.highstate has no SLS files: plan state.apply".to_owned()),
        ("state.sls", false) => refused("state.sls needs SLS files".to_owned()),
        (_, true) => {
            let mut kwargs = kwargs;
            let sync_mods = kwargs.shift_remove("sync_mods").unwrap_or_default();
            of_sls(context, &mods, &sync_mods, kwargs, Some(digest))
        }
        (_, false) => of_highstate(context, kwargs, Some(digest)),
    }
}

/// Runs compiled states in test mode. The results of states that would change something say what these depend on beside
/// what the state reports: the arguments, and the files of the master that they name.
pub(super) fn dry_run(run: &StateRun, low: &Low) -> Result<Map, CallError> {
    let context = run.context.planning();
    let settings = Settings { test: true, state_events: false, ..run.settings() };
    let mut results = brine_state::run(&context, low, &settings)?;
    let mut files = Files { context: &context, digests: HashMap::new() };
    for chunk in &low.chunks {
        if let Some(Value::Map(result)) = results.get_mut(chunk.tag().as_str())
            && is_change(result)
        {
            let (mut args, mut sources) = (chunk.args.clone(), Map::new());
            // The place among all states, which others without changes move; the order of the changes counts already.
            args.shift_remove("order");
            files.add_all(&Value::Map(args.clone()), &chunk.saltenv, &mut sources);
            let basis = map! {"args" => args, "files" => sources};
            result.insert(BASIS.into(), digest_of_value(&basis.into()).into());
        }
    }
    Ok(results)
}

/// The files of the master that states name.
struct Files<'a> {
    context: &'a Context,
    /// The digests by environment and path.
    digests: HashMap<(String, String), Option<String>>,
}

impl Files<'_> {
    /// Adds the digests of all files that a value names by `salt://`, of directories those of the files below.
    fn add_all(&mut self, value: &Value, saltenv: &str, digests: &mut Map) {
        match value {
            Value::Str(text) => {
                if let Some(rest) = text.strip_prefix("salt://") {
                    let (path, saltenv) = rest.split_once("?saltenv=").unwrap_or((rest, saltenv));
                    self.add(path, saltenv, digests);
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.add_all(item, saltenv, digests)),
            Value::Map(map) => map.iter().for_each(|(key, value)| {
                self.add_all(key, saltenv, digests);
                self.add_all(value, saltenv, digests);
            }),
            _ => {}
        }
    }

    fn add(&mut self, path: &str, saltenv: &str, digests: &mut Map) {
        if let Some(digest) = self.digest(path, saltenv) {
            digests.insert(path.into(), digest.into());
            return;
        }
        let below = format!("{}/", path.trim_end_matches('/'));
        let listed = self.context.minion.files.list(saltenv).unwrap_or_default();
        for path in listed.iter().filter(|path| path.starts_with(&below)).take(FILES) {
            let digest = self.digest(path, saltenv);
            digests.insert(path.as_str().into(), digest.into());
        }
    }

    fn digest(&mut self, path: &str, saltenv: &str) -> Option<String> {
        let key = (saltenv.to_owned(), path.to_owned());
        let files = &self.context.minion.files;
        let read = || Some(hex(Digest::Sha256.of(files.read(path, saltenv).ok()??)));
        self.digests.entry(key).or_insert_with(read).clone()
    }
}

/// Runs compiled states in test mode. Returns why they must not be run, if they would not change what was planned.
pub(super) fn refusal(run: &StateRun, low: &Low, digest: &str) -> Result<Option<Vec<String>>, CallError> {
    let results = Value::from(dry_run(run, low)?);
    let start = "the plan no longer holds, and nothing is run: ";
    Ok(match Outcome::read(&results, run.context.job.jid.as_str()) {
        Outcome::Planned(states) if states.digest() == digest => None,
        Outcome::Planned(states) if states.is_empty() => {
            Some(vec![format!("{start}this minion would change nothing any more")])
        }
        Outcome::Planned(states) => {
            let mut lines = vec![format!("{start}this minion would now make other changes than planned:")];
            let states = states.to_value();
            let states = states.as_list().unwrap_or_default();
            let text = |state: &Value, name| state.get(name).map(ToString::to_string).unwrap_or_default();
            lines.extend(states.iter().take(NAMED).map(|state| {
                format!("  {} ({}): {}", text(state, "id"), text(state, "state"), text(state, "comment"))
            }));
            if states.len() > NAMED {
                lines.push(format!("  and {} more states", states.len() - NAMED));
            }
            Some(lines)
        }
        Outcome::Failed(messages) => {
            let mut lines = vec![format!("{start}the comparing dry run failed:")];
            lines.extend(messages.into_iter().take(NAMED).map(|message| format!("  {message}")));
            Some(lines)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use brine_function::Args;
    use brine_job::plan::{PLANNING, digest_of};
    use brine_value::list;

    use super::*;

    /// Returns a context whose states write a file, and the path of the file.
    fn context(directory: &tempfile::TempDir) -> (Context, String) {
        let path = directory.path().join("a").display().to_string();
        let sls = format!("{path}:\n  file.managed:\n    - contents: {{{{ pillar.get('text', 'one') }}}}\n");
        (crate::testing::context(&[("web.sls", &sls), ("top.sls", "base: {'*': [web]}")]), path)
    }

    fn planned(context: &Context, fun: &str, args: &Args) -> String {
        let mut args = args.clone();
        args.keyword.extend(map! {"test" => true, PLANNING => true});
        digest_of(&context.call(fun, args).unwrap(), context.job.jid.as_str()).unwrap()
    }

    fn apply(context: &Context, fun: &str, digest: &str, args: Args) -> Result<Value, CallError> {
        let plan = map! {"digests" => map! {digest => list![context.minion.id.as_str()]}};
        let mut positional = vec![fun.into(), plan.into()];
        positional.extend(args.positional);
        context.call(APPLY_PLAN, Args { positional, keyword: args.keyword })
    }

    #[test]
    fn a_plan_is_applied_once_and_refused_when_it_no_longer_holds() {
        let directory = tempfile::tempdir().unwrap();
        let (context, path) = context(&directory);
        let web = Args::positional(["web".into()]);
        for (fun, args) in [("state.apply", &web), ("state.sls", &web), ("state.highstate", &Args::default())] {
            let digest = planned(&context, fun, args);
            // Meanwhile, the file has another content than at the time of the plan.
            std::fs::write(&path, "other\n").unwrap();
            let returned = apply(&context, fun, &digest, args.clone()).unwrap();
            assert!(returned.to_string().contains("the plan no longer holds"), "{fun}: {returned}");
            assert_eq!(context.job.retcode.load(Ordering::Relaxed), 1);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "other\n", "{fun}");
            std::fs::remove_file(&path).unwrap();
            let returned = apply(&context, fun, &digest, args.clone()).unwrap();
            assert_eq!(context.job.retcode.load(Ordering::Relaxed), 0, "{fun}: {returned}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n", "{fun}");
            // The same plan again: nothing is left to change.
            let returned = apply(&context, fun, &digest, args.clone()).unwrap();
            assert!(returned.to_string().contains("would change nothing any more"), "{fun}: {returned}");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn another_content_of_a_new_file_is_another_plan() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("b").display().to_string();
        let sls = format!("{path}:\n  file.managed:\n    - source: salt://b.txt\n");
        let of = |text: &str| {
            let context = crate::testing::context(&[("b.sls", &sls), ("b.txt", text)]);
            planned(&context, "state.apply", &Args::positional(["b".into()]))
        };
        assert_eq!(of("one"), of("one"));
        assert_ne!(of("one"), of("two"));
    }

    #[test]
    fn other_arguments_than_the_planned_ones_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (context, path) = context(&directory);
        let args = Args::positional(["web".into()]);
        let digest = planned(&context, "state.apply", &args);
        let other = Args { keyword: map! {"pillar" => map! {"text" => "two"}}, ..args.clone() };
        let returned = apply(&context, "state.apply", &digest, other).unwrap();
        assert!(returned.to_string().contains("other changes than planned"), "{returned}");
        for (fun, args, expected) in [
            ("cmd.run", Args::positional(["touch /nonexistent/x".into()]), "cannot be planned"),
            ("state.single", Args::positional(["test.nop".into()]), "cannot be planned"),
            ("state.highstate", args, "has no SLS files"),
            ("state.sls", Args::default(), "needs SLS files"),
        ] {
            let error = apply(&context, fun, &digest, args).unwrap_err().to_string();
            assert!(error.contains(expected), "{fun}: {error}");
        }
        let plan = map! {"digests" => map! {digest.as_str() => list!["another"]}};
        let error = context.call(APPLY_PLAN, Args::positional(["state.apply".into(), plan.into(), "web".into()]));
        assert!(error.unwrap_err().to_string().contains("is not part of the plan"));
        assert!(!std::path::Path::new(&path).exists());
    }
}
