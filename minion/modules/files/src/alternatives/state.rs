//! `alternatives`: states of the alternatives system. Salt 3006 has them; later releases have only the execution
//! functions.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Function, function, registry};
use brine_value::map;

use crate::alternatives as module;

/// State functions of `alternatives`.
pub static FUNCTIONS: &[Function<StateContext>] = registry!("alternatives", [install, remove, auto, set]);

/// Ensure that a path is an alternative of a name, behind this link. The path with the highest priority is current
/// unless one was selected.
#[function]
pub fn install(context: &StateContext, name: String, link: String, path: String, priority: i64) -> CallResult {
    let fields = map! {"link" => &link, "path" => &path, "priority" => priority};
    let report = |state: StateReturn| Ok(StateReturn { more: fields.clone(), ..state }.into());
    if module::exists(&context.call, &name, &path)? {
        return report(StateReturn::ok(&name, format!("Alternative {path} for {name} is already registered")));
    }
    if context.test {
        let comment = format!("Alternative will be set for {name} to {path} with priority {priority}");
        return report(StateReturn::would(&name, comment));
    }
    let output = module::add(&context.call, &name, &link, &path, priority)?;
    if !module::exists(&context.call, &name, &path)? {
        return report(StateReturn::failed(&name, format!("Alternative for {name} not installed: {output}")));
    }
    let comment = if module::current(&name).as_ref() == Some(&path) {
        format!("Alternative for {name} set to path {path} with priority {priority}")
    } else {
        format!("Alternative {path} for {name} registered with priority {priority} and not set to default")
    };
    let mut changes = map! {"name" => &name};
    changes.extend(fields.clone());
    report(StateReturn::ok(&name, comment).with_changes(changes))
}

/// Ensure that a path is not an alternative of a name.
#[function]
pub fn remove(context: &StateContext, name: String, path: String) -> CallResult {
    let report = |state| Ok(with_path(state, &path).into());
    if !module::exists(&context.call, &name, &path)? {
        return report(match module::current(&name) {
            Some(now) => StateReturn::ok(&name, format!("Alternative for {name} is set to it's default path {now}")),
            None => StateReturn::failed(&name, format!("Alternative for {name} doesn't exist")),
        });
    }
    if context.test {
        return report(StateReturn::would(&name, format!("Alternative for {name} will be removed")));
    }
    module::change(&context.call, &["--remove", &name, &path])?;
    report(match module::current(&name) {
        Some(now) => {
            let comment = format!("Alternative for {name} removed. Falling back to path {now}");
            StateReturn::ok(&name, comment).with_changes(map! {"path" => now})
        }
        None => StateReturn::ok(&name, format!("Alternative for {name} removed")),
    })
}

/// Ensure that a name is in automatic mode: its alternative with the highest priority is current.
#[function]
pub fn auto(context: &StateContext, name: String) -> CallResult {
    let shown = module::shown(&context.call, &name)?;
    if shown.lines().next().is_some_and(|line| line.ends_with(" auto mode")) {
        return Ok(StateReturn::ok(&name, format!("{name} already in auto mode")).into());
    }
    if context.test {
        return Ok(StateReturn::would(&name, format!("{name} will be put in auto mode")).into());
    }
    let output = module::change(&context.call, &["--auto", &name])?;
    Ok(StateReturn::ok(&name, "").with_changes(map! {"result" => output}).into())
}

/// Ensure that a path is the current alternative of a name.
#[function]
pub fn set(context: &StateContext, name: String, path: String) -> CallResult {
    let report = |state| Ok(with_path(state, &path).into());
    if module::current(&name).as_ref() == Some(&path) {
        return report(StateReturn::ok(&name, format!("Alternative for {name} already set to {path}")));
    }
    if !module::exists(&context.call, &name, &path)? {
        return report(StateReturn::failed(&name, format!("Alternative {path} for {name} doesn't exist")));
    }
    if context.test {
        return report(StateReturn::would(&name, format!("Alternative for {name} will be set to path {path}")));
    }
    module::change(&context.call, &["--set", &name, &path])?;
    report(if module::current(&name).as_ref() == Some(&path) {
        let comment = format!("Alternative for {name} set to path {path}");
        StateReturn::ok(&name, comment).with_changes(map! {"path" => &path})
    } else {
        StateReturn::failed(&name, format!("Alternative for {name} not updated"))
    })
}

fn with_path(state: StateReturn, path: &str) -> StateReturn {
    StateReturn { more: map! {"path" => path}, ..state }
}

#[cfg(test)]
mod tests {
    use brine_function::Args;

    use super::*;
    use crate::testing;

    /// Uses the host's own program and a name that only this test uses; it is removed at the end.
    #[test]
    fn alternatives_are_added_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        for name in ["one", "two"] {
            std::fs::write(path(name), "").unwrap();
        }
        let (one, two, name) = (path("one"), path("two"), format!("brine-test-{}", std::process::id()));
        let link = path("link");
        let install = |path: &str, priority: i64| map! {"link" => &link, "path" => path, "priority" => priority};
        let only = |path: &str| map! {"path" => path};
        let mut report = String::new();
        for (test, function, arguments) in [
            (true, "install", install(&one, 10)),
            (false, "install", install(&one, 10)),
            (false, "install", install(&one, 10)),
            (false, "install", install(&two, 5)),
            (false, "auto", map! {}),
            (true, "set", only(&two)),
            (false, "set", only(&two)),
            (false, "set", only(&two)),
            (false, "set", only("/never")),
            (true, "auto", map! {}),
            (true, "remove", only(&two)),
            (false, "remove", only(&two)),
            (false, "remove", only(&two)),
            (false, "remove", only(&one)),
            (false, "remove", only(&one)),
        ] {
            let mut keyword = map! {"name" => &name};
            keyword.extend(arguments);
            let context = testing::state_context(test, &[]);
            let states = &context.call.minion.states;
            let done = states.call(&context, &format!("alternatives.{function}"), Args::keyword(keyword)).unwrap();
            let field = |field: &str| done.get(field).cloned().unwrap_or_default();
            report += &format!("{function}: {} {} {}\n", field("result"), field("comment"), field("changes"));
        }
        let report = report.replace(&directory.path().display().to_string(), "/folder").replace(&name, "editor");
        insta::assert_snapshot!(report, @r#"
        install: None Alternative will be set for editor to /folder/one with priority 10 {}
        install: True Alternative for editor set to path /folder/one with priority 10 {'name': 'editor', 'link': '/folder/link', 'path': '/folder/one', 'priority': 10}
        install: True Alternative /folder/one for editor is already registered {}
        install: True Alternative /folder/two for editor registered with priority 5 and not set to default {'name': 'editor', 'link': '/folder/link', 'path': '/folder/two', 'priority': 5}
        auto: True editor already in auto mode {}
        set: None Alternative for editor will be set to path /folder/two {}
        set: True Alternative for editor set to path /folder/two {'path': '/folder/two'}
        set: True Alternative for editor already set to /folder/two {}
        set: False Alternative /never for editor doesn't exist {}
        auto: None editor will be put in auto mode {}
        remove: None Alternative for editor will be removed {}
        remove: True Alternative for editor removed. Falling back to path /folder/one {'path': '/folder/one'}
        remove: True Alternative for editor is set to it's default path /folder/one {}
        remove: True Alternative for editor removed {}
        remove: False Alternative for editor doesn't exist {}
        "#);
    }
}
