//! Temporary files: scripts and drafts that exist while a program needs them.

use std::io::Write;
use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_context::files::in_environment;
use brine_function::CallError;
use brine_system::processes;
use brine_system::user_files;
use brine_value::{Value, map};

use super::CommandArgs;

/// Prefix of the names of temporary files.
pub(super) const SCRATCH: &str = "__brine.";

/// A temporary file that is removed on drop.
pub struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = user_files::remove_file(&self.0);
    }
}

impl Scratch {
    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates a file that only its owner can read and run.
    pub fn new(content: &[u8], owner: Option<&str>) -> Result<Self, CallError> {
        Scratch::ending(content, owner, None)
    }

    /// Creates a file as `new`, with a suffix by which programs recognize its type.
    pub fn ending(content: &[u8], owner: Option<&str>, ending: Option<&str>) -> Result<Self, CallError> {
        let ending = ending.map(|ending| format!(".{ending}")).unwrap_or_default();
        Scratch::owned(&std::env::temp_dir(), content, &ending, owner)
    }

    /// Creates a file as `new` in a directory, with a suffix.
    pub fn within(directory: &Path, content: &[u8], ending: &str) -> Result<Self, CallError> {
        Scratch::owned(directory, content, ending, None)
    }

    fn owned(directory: &Path, content: &[u8], ending: &str, owner: Option<&str>) -> Result<Self, CallError> {
        let owner = owner.and_then(|name| nix::unistd::User::from_name(name).ok().flatten());
        let path = directory.join(format!("{SCRATCH}{:016x}{ending}", rand::random::<u64>()));
        let written = processes::write_program(|| {
            let mut file = user_files::create_new(&path, 0o700)?;
            // From here on, a failed write removes the file too.
            let scratch = Scratch(path.clone());
            file.write_all(content)?;
            if let Some(owner) = &owner {
                std::os::unix::fs::fchown(&file, Some(owner.uid.as_raw()), Some(owner.gid.as_raw()))?;
            }
            Ok::<_, std::io::Error>(scratch)
        });
        written.map_err(|error| CallError::Execution(format!("{} cannot be written: {error}", path.display())))
    }
}

/// Returns the content of a script, rendered if a template engine is named.
pub fn script_content(
    context: &Context,
    source: &str,
    saltenv: &str,
    args: &CommandArgs,
) -> Result<Option<Vec<u8>>, CallError> {
    let content = if source.starts_with("salt://") {
        let (path, saltenv) = in_environment(source, saltenv);
        context.minion.files.read(path, saltenv).map_err(CallError::execution)?
    } else {
        let path = source.strip_prefix("file://").unwrap_or(source);
        if !path.contains("://") && !Path::new(path).is_absolute() {
            return Err(CallError::Execution(format!("Path '{path}' is not absolute")));
        }
        std::fs::read(path).ok()
    };
    match (content, args.is_template()?) {
        (Some(content), true) => {
            let text = String::from_utf8(content).map_err(CallError::execution)?;
            let mut variables = map! {"source" => source};
            // As in Salt, further arguments of the call are variables, too.
            let is_own =
                |name: &str| name.starts_with("__") || ["context", "defaults", "pillar", "pillarenv"].contains(&name);
            let further = args.kwargs.iter().filter(|(name, _)| name.as_str().is_some_and(|name| !is_own(name)));
            variables.extend(further.map(|(name, value)| (name.clone(), value.clone())));
            variables.extend(args.kwargs.get("defaults").and_then(Value::as_map).cloned().unwrap_or_default());
            variables.extend(args.kwargs.get("context").and_then(Value::as_map).cloned().unwrap_or_default());
            let rendering = brine_state::Source::new(context, args.template_pillar(context)?);
            let rendered = rendering.render_template(source, &text, &variables, saltenv);
            Ok(Some(rendered.map_err(CallError::execution)?.into_bytes()))
        }
        (content, _) => Ok(content),
    }
}
