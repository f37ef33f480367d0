//! Arguments of functions that git would take for options.

use brine_function::Args;
use brine_testing::debian;
use brine_value::{Map, list, map};

use crate::testing::{self, Scripted};

/// No program runs: the transcript is empty.
#[test]
fn arguments_never_become_options() {
    const OPTION: &str = "--upload-pack=touch /tmp/x";
    let context = testing::context_with(debian(), Scripted::new(""));
    let calls: &[(&str, Map)] = &[
        ("git.branch", map! {"name" => OPTION}),
        ("git.checkout", map! {"rev" => OPTION}),
        ("git.config_get", map! {"key" => OPTION}),
        ("git.config_get_regexp", map! {"key" => OPTION}),
        ("git.config_set", map! {"key" => OPTION, "value" => "x"}),
        ("git.config_unset", map! {"key" => OPTION}),
        ("git.describe", map! {"rev" => OPTION}),
        ("git.diff", map! {"item1" => OPTION}),
        ("git.fetch", map! {"remote" => OPTION}),
        ("git.fetch", map! {"remote" => "origin", "refspecs" => list!["main", OPTION]}),
        ("git.ls_remote", map! {"remote" => OPTION}),
        ("git.ls_remote", map! {"ref" => OPTION}),
        ("git.merge", map! {"rev" => OPTION}),
        ("git.merge_base", map! {"refs" => list![OPTION, "main"]}),
        ("git.merge_base", map! {"fork_point" => OPTION}),
        ("git.push", map! {"remote" => OPTION, "ref" => "main"}),
        ("git.push", map! {"remote" => "origin", "ref" => OPTION}),
        ("git.rebase", map! {"rev" => OPTION}),
        ("git.remote_refs", map! {"url" => OPTION}),
        ("git.remote_refs", map! {"url" => "https://h/r", "filter" => OPTION}),
        ("git.remote_set", map! {"url" => OPTION}),
        ("git.remote_set", map! {"url" => "https://h/r", "remote" => OPTION}),
        ("git.rev_parse", map! {"rev" => OPTION}),
        ("git.revision", map! {"rev" => OPTION}),
        ("git.stash", map! {"action" => OPTION}),
        ("git.submodule", map! {"command" => OPTION}),
        ("git.symbolic_ref", map! {"ref" => OPTION}),
        ("git.symbolic_ref", map! {"ref" => "HEAD", "value" => OPTION}),
        ("git.tag", map! {"name" => OPTION}),
        ("git.tag", map! {"name" => "v1", "ref" => OPTION}),
    ];
    for (function, arguments) in calls {
        let mut keyword = arguments.clone();
        if *function != "git.remote_refs" {
            keyword.insert("cwd".into(), "/tmp".into());
        }
        let error = context.call(function, Args::keyword(keyword)).unwrap_err().to_string();
        assert!(error.contains("cannot be used: it starts with '-'"), "{function} {arguments:?}: {error}");
    }
    for (function, arguments) in [
        ("git.latest", map! {"name" => OPTION, "target" => "/tmp/x"}),
        ("git.latest", map! {"name" => "https://h/r", "target" => "/tmp/x", "rev" => OPTION}),
        ("git.latest", map! {"name" => "https://h/r", "target" => "/tmp/x", "branch" => OPTION}),
        ("git.latest", map! {"name" => "https://h/r", "target" => "/tmp/x", "remote" => OPTION}),
        ("git.detached", map! {"name" => OPTION, "target" => "/tmp/x", "rev" => "main"}),
        ("git.detached", map! {"name" => "https://h/r", "target" => "/tmp/x", "rev" => OPTION}),
        ("git.cloned", map! {"name" => OPTION, "target" => "/tmp/x"}),
        ("git.cloned", map! {"name" => "https://h/r", "target" => "/tmp/x", "branch" => OPTION}),
    ] {
        let state = brine_testing::state_context(false, context.clone());
        let outcome = context.minion.states.call(&state, function, Args::keyword(arguments)).unwrap();
        let comment = outcome.get("comment").unwrap().to_string();
        assert!(comment.contains("is not a valid value for the"), "{function}: {comment}");
    }
}
