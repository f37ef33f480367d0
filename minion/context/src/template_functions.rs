//! The behaviour of a minion's functions in templates: undefined arguments, changed arguments, and the types of
//! results.

use brine_jinja::{Behaviour, MayBeUndefined, Origin, Role};

/// Returns the treatment of a function's arguments and result in a template.
pub fn behaviour(function: &str) -> Behaviour {
    Behaviour {
        undefined: may_be_undefined(function),
        changes_first: matches!(function, "defaults.merge" | "defaults.update" | "slsutil.update"),
        is_lookup: matches!(module(function), "pillar" | "grains") && function != "grains.set",
        is_ordered: function == "slsutil.renderer",
        origins: origins(function),
    }
}

/// Returns the name of the function that the template engine calls in this role.
pub fn name_of(role: Role) -> &'static str {
    match role {
        Role::IfElse => "match.ifelse",
        Role::HttpQuery => "http.query",
        Role::Run => "cmd.run",
        Role::RunInShell => "cmd.run_stdout",
        Role::LookUpGrains => "grains.get",
        Role::OpenBox => "nacl.dec",
        Role::LookUpPillar => "pillar.get",
    }
}

fn module(function: &str) -> &str {
    function.split_once('.').map_or(function, |(module, _)| module)
}

fn may_be_undefined(function: &str) -> MayBeUndefined {
    match function {
        "grains.get" | "config.get" | "config.option" | "environ.get" => MayBeUndefined::Default(1),
        "grains.filter_by" => MayBeUndefined::Default(3),
        _ if matches!(module(function), "mine" | "match") => MayBeUndefined::All,
        // Also `test.arg_repr` and its like.
        _ if ["test.echo", "test.arg", "test.kwarg"].iter().any(|start| function.starts_with(start)) => {
            MayBeUndefined::All
        }
        _ => MayBeUndefined::None,
    }
}

fn origins(function: &str) -> &'static [Origin] {
    use Origin::{Argument, Merged, Pillar, PillarAtKey};
    match function {
        "pillar.get" => &[Argument(1, "default"), PillarAtKey],
        "pillar.raw" => &[PillarAtKey, Pillar],
        "pillar.items" | "pillar.item" => &[Pillar],
        "config.get" => &[PillarAtKey, Argument(1, "default")],
        "grains.filter_by" => &[Merged(2, "merge")],
        "defaults.deepcopy" | "test.echo" => &[Argument(0, "")],
        "defaults.merge" | "defaults.update" | "slsutil.update" => &[Argument(0, "dest"), Argument(1, "upd")],
        "slsutil.merge" => &[Argument(0, "obj_a"), Argument(1, "obj_b")],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_are_not_named_have_the_default() {
        assert_eq!(behaviour("cmd.run"), Behaviour::default());
        assert_eq!(behaviour("grains.set"), Behaviour::default());
    }

    #[test]
    fn undefined_arguments_are_accepted_by_functions_that_return_them() {
        for (function, expected) in [
            ("grains.get", MayBeUndefined::Default(1)),
            ("grains.filter_by", MayBeUndefined::Default(3)),
            ("test.arg_repr", MayBeUndefined::All),
            ("mine.get", MayBeUndefined::All),
            ("mined.get", MayBeUndefined::None),
            ("pillar.get", MayBeUndefined::None),
        ] {
            assert_eq!(behaviour(function).undefined, expected, "{function}");
        }
    }
}
