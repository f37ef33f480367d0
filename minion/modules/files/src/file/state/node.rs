//! `file.mknod`: device nodes and named pipes.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError};
use brine_value::{Value, list, map};

/// The desired node.
pub(super) struct Node {
    pub kind: String,
    pub number: (i64, i64),
    pub user: Value,
    pub group: Value,
    pub mode: Value,
}

impl Node {
    /// Returns the name of the type in messages, and the function that checks for it.
    fn named(&self) -> Option<(&'static str, &'static str)> {
        Some(match self.kind.as_str() {
            "c" => ("character device", "file.is_chrdev"),
            "b" => ("block device", "file.is_blkdev"),
            "p" => ("fifo pipe", "file.is_fifo"),
            _ => return None,
        })
    }

    pub fn state(&self, context: &StateContext, name: &str) -> Result<Value, CallError> {
        let failed = |comment: String| Ok(StateReturn::failed(name, comment).into());
        if name.is_empty() {
            return failed("Must provide name to file.mknod".into());
        }
        let Some((what, is_there)) = self.named() else {
            return failed(format!(
                "Node type unavailable: '{}'. Available node types are character ('c'), block ('b'), and pipe ('p')",
                self.kind
            ));
        };
        let call = |fun: &str, args: Args| context.call.call(fun, args);
        let sentence = format!("{}{}", what[..1].to_uppercase(), &what[1..]);
        if std::path::Path::new(name).is_file() {
            return failed(format!("File {name} exists and is not a {what}. Refusing to continue"));
        }
        let (major, minor) = self.number;
        if !call(is_there, Args::positional([Value::from(name)]))?.is_truthy() {
            if context.test {
                return Ok(StateReturn::predicted(name, format!("{sentence} {name} is set to be created")).into());
            }
            let args = map! {"name" => name, "ntype" => self.kind.as_str(), "major" => major, "minor" => minor,
            "user" => self.user.clone(), "group" => self.group.clone(), "mode" => self.mode.clone()};
            return call("file.mknod", Args::keyword(args));
        }
        if self.kind != "p" {
            let have = call("file.get_devmm", Args::positional([Value::from(name)]))?;
            if have != list![major, minor] {
                let number = have.as_list().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>();
                return failed(format!(
                    "{sentence} {name} exists and has a different major/minor {}. Refusing to continue",
                    number.join("/")
                ));
            }
        }
        let attributes = super::Attributes::from_state(context, &self.mode, &self.user, &self.group);
        let changes = attributes.and_then(|attributes| {
            let path = std::path::Path::new(name);
            if context.test { Ok(attributes.differences(path)) } else { attributes.apply(path) }
        });
        Ok(match changes {
            Err(error) => StateReturn::failed(name, error),
            Ok(changes) if changes.is_empty() => {
                StateReturn::ok(name, format!("{sentence} {name} is in the correct state"))
            }
            Ok(changes) if context.test => StateReturn::predicted(name, "").with_changes(changes),
            Ok(changes) => StateReturn::ok(name, "").with_changes(changes),
        }
        .into())
    }
}
