//! Owners of extracted paths.

use std::fs;
use std::path::Path;

use brine_function::Args;
use brine_value::{Value, map};
use nix::unistd::{Group, User};

use super::{Early, Extracted, StateContext, StateReturn};
use crate::archive::Contents;
use crate::file::state::attributes::Attributes;

/// Paths whose owner was changed, and those that failed.
#[derive(Default)]
pub(super) struct Enforced {
    pub changed: bool,
    missing: Vec<String>,
    failed: Vec<String>,
}

impl Extracted {
    pub(super) fn owner(&self, name: &str) -> Result<Attributes, Early> {
        let failed = |comment: String| Box::new(StateReturn::failed(name, comment));
        let is_number = |name: &str| name.parse::<u32>().is_ok();
        if let Some(user) =
            self.user.as_ref().filter(|user| !is_number(user) && !matches!(User::from_name(user), Ok(Some(_))))
        {
            return Err(failed(format!("User {user} does not exist")));
        }
        if let Some(group) =
            self.group.as_ref().filter(|name| !is_number(name) && !matches!(Group::from_name(name), Ok(Some(_))))
        {
            return Err(failed(format!("Group {group} does not exist")));
        }
        Attributes::new(&Value::Nil, &self.user.clone().into(), &self.group.clone().into()).map_err(failed)
    }

    pub(super) fn enforce(
        &self,
        context: &StateContext,
        directory: &str,
        contents: &Contents,
        owner: &Attributes,
    ) -> Enforced {
        let (dirs, files) = match &self.owned {
            Some(path) if Path::new(path).is_dir() => (vec![path.clone()], Vec::new()),
            Some(path) => (Vec::new(), vec![path.clone()]),
            None => (contents.top_level_dirs(), [contents.top_level_files(), contents.top_level_links()].concat()),
        };
        let mut enforced = Enforced::default();
        let recurse: Vec<String> = [("user", &self.user), ("group", &self.group)]
            .into_iter()
            .filter(|(_, name)| name.is_some())
            .map(|(key, _)| key.to_owned())
            .collect();
        for dir in dirs {
            let path = Path::new(directory).join(&dir).display().to_string();
            if !Path::new(&path).is_dir() {
                if !context.test {
                    enforced.missing.push(path);
                }
                continue;
            }
            let args = map! {
                "name" => path.as_str(), "user" => self.user.clone(), "group" => self.group.clone(),
                "recurse" => recurse.clone(),
            };
            let outcome = context.call_state("file.directory", Args::keyword(args)).unwrap_or_default();
            enforced.changed |= outcome.get("changes").is_some_and(Value::is_truthy);
            if !outcome.get("result").is_some_and(Value::is_truthy) {
                enforced.failed.push(path);
            }
        }
        for file in files {
            let path = Path::new(directory).join(&file);
            let pathname = path.display().to_string();
            if fs::symlink_metadata(&path).is_err() {
                if !context.test {
                    enforced.missing.push(pathname.clone());
                    enforced.failed.push(pathname);
                }
            } else if context.test {
                enforced.changed |= owner.link_differs(&path);
            } else {
                match owner.apply_to_link(&path) {
                    Ok(changed) => enforced.changed |= changed,
                    Err(_) => enforced.failed.push(file),
                }
            }
        }
        enforced
    }
}

impl Enforced {
    pub fn report(self, has_if_missing: bool, outcome: &mut StateReturn) {
        let list = |paths: &[String]| format!("\n- {}", paths.join("\n- "));
        if !self.missing.is_empty() {
            if !has_if_missing {
                outcome.result = Some(false);
            }
            outcome.comment += &format!(
                "\n\nWhile trying to enforce user/group ownership, the following paths were missing:\n{}",
                list(&self.missing)
            );
        }
        if !self.failed.is_empty() {
            outcome.result = Some(false);
            outcome.comment += &format!(
                "\n\nWhile trying to enforce user/group ownership, Salt was unable to change ownership on the \
                 following paths:\n{}",
                list(&self.failed)
            );
        }
    }
}
