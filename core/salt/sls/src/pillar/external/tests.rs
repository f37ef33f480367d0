use super::*;

#[test]
fn minions_may_request_only_harmless_modules() {
    let opts =
        brine_value::map! {"on_demand_ext_pillar" => brine_value::list!["gpg", "mine", "git", "cmd_yaml", "file_tree"]};
    for (entry, error) in [
        (brine_value::map! {"gpg" => Value::Nil, "mine" => "x"}, None),
        (brine_value::map! {"nodegroups" => Value::Nil}, Some("ext_pillar nodegroups is not allowed on demand")),
        (brine_value::map! {"gpg" => Value::Nil, "other" => "x"}, Some("ext_pillar other is not allowed on demand")),
        (brine_value::map! {"git" => "main ext::sh"}, Some("ext_pillar git is not available on demand")),
        (brine_value::map! {"cmd_yaml" => "id"}, Some("ext_pillar cmd_yaml is not available on demand")),
        (brine_value::map! {"file_tree" => "/"}, Some("ext_pillar file_tree is not available on demand")),
    ] {
        let checked = check_on_demand(&opts, &entry).err();
        let is_expected = match (&checked, error) {
            (Some(message), Some(expected)) => message.starts_with(expected),
            (message, expected) => message.is_none() && expected.is_none(),
        };
        assert!(is_expected, "{entry:?}: {checked:?}");
    }
}

#[test]
fn ids_are_quoted_in_commands() {
    for (command, id, whole) in [
        ("who %s", "web1", Ok("who web1")),
        ("who '%s' %s", "web1", Ok("who 'web1' web1")),
        ("who %s", "$(id)", Ok("who '$(id)'")),
        ("who %s;x", "a;b c", Ok("who 'a;b c';x")),
        ("who '%s'", "$(id)", Err(())),
        ("who \"%s\"", "$(id)", Err(())),
    ] {
        assert_eq!(with_id(command, id).map_err(|_| ()), whole.map(str::to_owned), "{command} {id}");
    }
}
