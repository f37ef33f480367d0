use brine_value::list;

use super::*;

fn job() -> Load {
    let fields = map! {
        "jid" => "20261120235852025555", "fun" => "test.arg", "arg" => list![1, map! {"__kwarg__" => true, "a" => 2}],
        "tgt" => "*", "user" => "ann", "minions" => list!["bad", "gone", "good", "odd"],
    };
    Load::from_map(fields).unwrap()
}

#[test]
fn minions_are_selected_by_their_returns() {
    let returns = map! {
        "good" => map! {"return" => 1, "retcode" => 0, "success" => true},
        "bad" => map! {"return" => 1, "retcode" => 2},
        "odd" => map! {"return" => 1, "retcode" => 0, "success" => false},
    };
    for (failed, missing, expected) in [
        (false, false, &["bad", "gone", "good", "odd"][..]),
        (true, false, &["bad", "odd"]),
        (false, true, &["gone"]),
        (true, true, &["bad", "gone", "odd"]),
    ] {
        assert_eq!(selected(&job(), &returns, failed, missing), expected, "{failed} {missing}");
    }
}

#[test]
fn only_its_user_and_administrators_may_rerun_a_job() {
    for (user, may) in [("ann", true), ("root", true), ("sudo_bob", true), ("salt", true), ("bob", false), ("", false)]
    {
        assert_eq!(may_rerun(user, &job(), "salt").is_ok(), may, "{user}");
    }
}

#[test]
fn the_request_keeps_function_and_arguments() {
    let request = request(&job(), job().jid(), &["a".to_owned()], "root").unwrap();
    assert_eq!((request.fun, request.arg), ("test.arg".into(), job().arg().to_vec()));
    assert_eq!((request.tgt, request.tgt_type.as_str(), request.jid), (list!["a"], "list", None));
    let mut masked = job().into_map();
    masked.insert("arg".into(), list![map! {"password" => brine_mask::MASK}]);
    let masked = Load::from_map(masked).unwrap();
    let error = super::request(&masked, masked.jid(), &[], "root").unwrap_err();
    assert!(error.to_string().contains("had secret arguments"), "{error}");
    let call = Load::from_map(map! {"jid" => "20261120235852025555"}).unwrap();
    assert!(super::request(&call, call.jid(), &[], "root").is_err());
}
