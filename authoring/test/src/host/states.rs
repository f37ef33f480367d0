//! The states of a test: those of `file` work on the files of the test, `test.*` work as they are, and all others are not
//! called, as with `mock=True` of Salt's `state.apply`.

use std::sync::atomic::Ordering;

use brine_context::StateContext;
use brine_function::{Args, CallError, CallResult};
use brine_value::{Map, Value, map};

use super::World;

/// The states of `file` that are examined with the files of the test.
pub const EXAMINED: [&str; 17] = [
    "absent",
    "append",
    "blockreplace",
    "comment",
    "directory",
    "exists",
    "keyvalue",
    "line",
    "managed",
    "missing",
    "prepend",
    "recurse",
    "replace",
    "serialize",
    "symlink",
    "touch",
    "uncomment",
];

/// Arguments of these states that name users, programs or features of the host. They are ignored.
const OF_HOST: [&str; 14] = [
    "attrs",
    "backup",
    "check_cmd",
    "file_owner",
    "group",
    "selinux",
    "tmp_dir",
    "tmp_ext",
    "user",
    "win_deny_perms",
    "win_inheritance",
    "win_owner",
    "win_perms",
    "win_perms_reset",
];

/// Whether the result of a state says what it would do on the host.
pub fn is_examined(state: &str, function: &str) -> bool {
    state == "test" || state == "file" && EXAMINED.contains(&function)
}

impl World {
    /// Returns the result of a state.
    pub(super) fn state(&self, context: &StateContext, function: &str, args: Args) -> CallResult {
        let name = args.keyword.get("name").cloned().unwrap_or_default();
        if let Some(fields) = self.given.states.get(&context.id).or_else(|| self.given.states.get(function)) {
            let mut result = map! {"name" => name, "result" => true, "changes" => map! {}, "comment" => ""};
            result.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
            return Ok(result.into());
        }
        let (module, called) = function.split_once('.').unwrap_or((function, ""));
        if !is_examined(module, called) {
            let result =
                map! {"name" => name, "comment" => "Not called, mocked", "changes" => map! {}, "result" => true};
            return Ok(result.into());
        }
        self.with_files(context, function, args)
    }

    /// Calls a state of `file` with the files of the test.
    fn with_files(&self, context: &StateContext, function: &str, mut args: Args) -> CallResult {
        let writes = self.writes.load(Ordering::Relaxed);
        let Some(Value::Str(name)) = args.keyword.get("name").cloned() else {
            return self.library.states.call(context, function, args);
        };
        let sources = args.keyword.get("source").cloned().unwrap_or_default();
        if let Some(remote) = sources_of(&sources).into_iter().find(|source| is_remote(source)) {
            let message = format!(
                "{function}: the source {remote} cannot be read by a test: only salt:// and files of the test can"
            );
            self.refuse(&message);
            return Err(CallError::Execution(message));
        }
        self.root.make_parents(&name).map_err(CallError::execution)?;
        args.keyword.insert("name".into(), self.place(&name).into());
        if args.keyword.contains_key("source") {
            args.keyword.insert("source".into(), self.placed(sources));
        }
        args.keyword.retain(|key, _| !key.as_str().is_some_and(|key| OF_HOST.contains(&key)));
        let chunk: Map = context
            .chunk
            .iter()
            .filter(|(key, _)| !key.as_str().is_some_and(|key| OF_HOST.contains(&key)))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let context = StateContext { test: !writes, chunk: chunk.into(), ..context.clone() };
        let result = self.library.states.call(&context, function, args);
        result.map(|result| self.root.shown(result)).map_err(|error| {
            let message = self.root.shown(error.message().into());
            CallError::Execution(message.to_string())
        })
    }

    /// Returns sources with the places of paths of the host.
    fn placed(&self, source: Value) -> Value {
        match source {
            Value::Str(path) if path.starts_with('/') => self.place(&path).into(),
            Value::Str(url) => match url.strip_prefix("file://") {
                Some(path) => format!("file://{}", self.place(path)).into(),
                None => url.into(),
            },
            Value::List(sources) => sources.into_iter().map(|source| self.placed(source)).collect(),
            other => other,
        }
    }
}

fn sources_of(source: &Value) -> Vec<String> {
    match source {
        Value::Str(source) => vec![source.clone()],
        Value::List(sources) => sources.iter().flat_map(sources_of).collect(),
        Value::Map(map) => map.keys().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

/// Whether a source is neither below `salt://` nor a file of the host.
fn is_remote(source: &str) -> bool {
    source.split_once("://").is_some_and(|(kind, _)| !matches!(kind, "salt" | "file"))
}
