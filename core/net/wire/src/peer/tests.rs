use super::*;
use brine_value::{list, map};

#[test]
fn mine_queries_name_one_function_or_several() {
    for (fun, functions, by_function) in [
        ("a".into(), vec!["a"], false),
        ("a,b,a".into(), vec!["a", "b"], true),
        ("a,a".into(), vec!["a"], false),
        (list!["a"], vec!["a"], true),
    ] {
        let query = MineQuery::from_map(&map! {"tgt" => "*", "fun" => fun, "expr_form" => "pcre"}).unwrap();
        assert_eq!(
            (query.functions, query.by_function),
            (functions.iter().map(ToString::to_string).collect(), by_function)
        );
        assert_eq!(query.tgt_type, "pcre");
    }
    assert_eq!(MineQuery::from_map(&map! {"tgt" => "*"}), Err(WireError::Missing("fun")));
}

#[test]
fn peer_arguments_are_parsed_like_a_command_line() {
    let load = map! {
        "fun" => "test.arg", "arg" => list!["1", "a=[x, y]", "b=2", list!["z"]], "tgt" => "web*", "tmo" => "7",
        "form" => "full", "no_parse" => list!["b"], "ret" => "",
    };
    let publish = PeerPublish::from_map(&load).unwrap();
    assert_eq!(
        publish.request.arg,
        vec![1.into(), list!["z"], map! {"a" => list!["x", "y"], "b" => "2", "__kwarg__" => true}.into()]
    );
    assert_eq!((publish.timeout, publish.full), (Some(Duration::from_secs(7)), true));
    assert_eq!(publish.functions(), ["test.arg"]);
}

#[test]
fn several_functions_have_a_list_of_arguments_each() {
    let load = map! {"fun" => "cmd.run,test.ping", "arg" => list!["ls -l", ""], "tgt" => "*", "ret" => ""};
    let publish = PeerPublish::from_map(&load).unwrap();
    assert_eq!(publish.functions(), ["cmd.run", "test.ping"]);
    assert_eq!(publish.request.arg, vec![list!["ls", "-l"], list![]]);
}

#[test]
fn a_syndics_message_holds_the_returns_of_many_minions() {
    let bundle = map! {
        "jid" => "1", "id" => "syndic", "fun" => "test.ping", "master_id" => "m",
        "return" => map! {"a" => map! {"return" => true, "retcode" => 0}, "b" => "text"},
    };
    let loads = syndic_returns(bundle.clone()).unwrap();
    assert_eq!(
        loads,
        [
            map! {"jid" => "1", "id" => "a", "return" => true, "retcode" => 0, "master_id" => "m", "fun" => "test.ping"},
            map! {"jid" => "1", "id" => "b", "return" => "text", "master_id" => "m", "fun" => "test.ping"},
        ]
    );
    assert_eq!(syndic_returns(map! {"load" => list![bundle.clone(), bundle]}).unwrap().len(), 4);
    assert!(syndic_returns(map! {"jid" => "1", "return" => 5}).is_err());
}
