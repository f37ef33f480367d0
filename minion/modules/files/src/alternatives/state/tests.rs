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
        let outcome = states.call(&context, &format!("alternatives.{function}"), Args::keyword(keyword)).unwrap();
        let field = |field: &str| outcome.get(field).cloned().unwrap_or_default();
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
