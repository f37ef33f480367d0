use super::*;
use brine_value::list;

fn enabled() -> Vec<String> {
    vec!["local".to_owned(), "runner".to_owned()]
}

fn raw(fields: Map) -> RawChunk {
    RawChunk::parse(vec![fields], &mut { 1 << 20 }).unwrap().remove(0)
}

fn chunk(fields: Map) -> Chunk {
    Chunk::new(raw(fields), Some("abc"), &enabled()).unwrap()
}

#[test]
fn chunks_are_validated_in_salts_order() {
    let password = map! {"client" => "local", "eauth" => "file", "username" => "fred", "password" => "x"};
    for (fields, token, expected) in [
        (map! {"client" => "local"}, Some("abc"), Ok(Proof::Token("abc".into()))),
        (map! {"client" => "local", "token" => "other"}, Some("abc"), Ok(Proof::Token("abc".into()))),
        (map! {"client" => "local", "token" => "12ab"}, None, Ok(Proof::Token("12ab".into()))),
        (password, None, Ok(Proof::Password { eauth: "file".into(), username: "fred".into(), password: "x".into() })),
        (map! {"client" => "local"}, None, Err((401, "No authentication credentials given"))),
        (map! {"client" => "local", "token" => "xyz"}, None, Err((401, "Invalid token"))),
        (map! {"client" => "local", "token" => list!["1"]}, None, Err((401, "Invalid token"))),
        (map! {"client" => "x"}, None, Err((400, "Invalid client specified: 'x'"))),
        (map! {}, Some("abc"), Err((400, "Invalid client specified: 'None'"))),
        (
            map! {"client" => "wheel"},
            Some("abc"),
            Err((400, "Client disabled: 'wheel'. Add to 'netapi_enable_clients' master config option to enable.")),
        ),
    ] {
        let read = Chunk::new(raw(fields.clone()), token, &enabled());
        let read = read.map(|chunk| chunk.proof).map_err(|error| (error.status.as_u16(), error.message));
        assert_eq!(read, expected.map_err(|(status, text)| (status, text.to_owned())), "{fields:?}");
    }
}

#[test]
fn a_job_has_the_fields_of_its_chunk() {
    let keyword = |pairs: Map| -> Value {
        let mut pairs = pairs;
        pairs.insert("__kwarg__".into(), true.into());
        pairs.into()
    };
    for (fields, tgt, tgt_type, arg) in [
        (map! {"tgt" => "*", "batch" => Value::Nil}, "*".into(), "glob", vec![]),
        (map! {"tgt" => "os:Debian", "expr_form" => "grain"}, "os:Debian".into(), "grain", vec![]),
        (map! {"tgt" => "a,b c", "tgt_type" => "list"}, list!["a", "b", "c"], "list", vec![]),
        (map! {"tgt" => list!["a"], "tgt_type" => "list"}, list!["a"], "list", vec![]),
        (
            map! {"tgt" => "*", "arg" => list!["1", 2, "cwd=/tmp"], "kwarg" => map! {"a" => 1}},
            "*".into(),
            "glob",
            vec!["1".into(), 2.into(), keyword(map! {"cwd" => "/tmp", "a" => 1})],
        ),
    ] {
        let mut fields = fields;
        fields.extend(map! {"client" => "local", "fun" => "test.arg"});
        let request = chunk(fields.clone()).request().unwrap();
        assert_eq!((request.tgt, request.tgt_type.as_str()), (tgt, tgt_type), "{fields:?}");
        let actual = Args::from_wire(&request.arg);
        assert_eq!(actual, Args::from_wire(&arg), "{fields:?}");
    }
    for fields in [
        map! {"fun" => "test.ping"},
        map! {"tgt" => "*"},
        map! {"tgt" => "*", "fun" => ""},
        map! {"tgt" => "*", "fun" => "test.ping", "jid" => "x"},
        map! {"tgt" => "*", "fun" => "test.ping", "kwarg" => "x"},
    ] {
        let mut fields = fields;
        fields.insert("client".into(), "local".into());
        assert_eq!(chunk(fields.clone()).request().unwrap_err().status, 400, "{fields:?}");
    }
}

#[test]
fn fields_without_a_place_in_a_job_are_options_for_the_master_to_decide() {
    let options = map! {
        "ret_config" => "x", "ret_kwargs" => map! {"host" => "h"}, "metadata" => 1, "module_executors" => list!["sudo"],
        "executor_opts" => map! {"a" => 1}, "start_event" => true, "timeout" => 5, "batch_wait" => 1, "auth_list" => list![".*"],
        "_cause" => 1, "id" => "web1", "unknown" => 1,
    };
    let mut fields = options.clone();
    fields.extend(map! {
        "client" => "local", "tgt" => "*", "fun" => "test.ping", "ret" => "redis", "jid" => "20261128000000000001",
        "arg" => list![1], "kwarg" => map! {"a" => 1}, "eauth" => "file", "username" => "fred", "password" => "s3cret",
        "user" => "root", "token_expire" => 5, "delimiter" => Value::Nil,
    });
    let request = chunk(fields).request().unwrap();
    assert_eq!(request.kwargs, options);
    assert_eq!((request.ret.as_str(), request.user.as_str()), ("redis", ""));
}

#[test]
fn calls_take_arguments_in_all_forms() {
    let fields = map! {
        "client" => "runner", "fun" => "jobs.list_job", "arg" => list!["1", "x=2", list![3]],
        "kwarg" => map! {"y" => 4}, "jid" => "5", "full_return" => true, "timeout" => "7",
    };
    let chunk = chunk(fields);
    let call = chunk.call(false).unwrap();
    assert_eq!(call.args.positional, [1.into(), list![3]]);
    assert_eq!(call.args.keyword, map! {"x" => 2, "y" => 4, "jid" => "5"});
    assert_eq!(chunk.seconds("timeout"), Ok(Some(Duration::from_secs(7))));
    assert!(chunk.is_full_return());
}

#[test]
fn timeouts_are_bounded_numbers() {
    for (value, expected) in [
        (5.into(), Some(5)),
        (1e300.into(), Some(86_400)),
        ("2.0".into(), Some(2)),
        (Value::from(-1), None),
        ("x".into(), None),
        (f64::NAN.into(), None),
    ] {
        let chunk = chunk(map! {"client" => "local", "timeout" => value});
        assert_eq!(chunk.seconds("timeout").ok().flatten().map(|time| time.as_secs()), expected);
    }
}

#[test]
fn arguments_are_bounded_in_number_and_memory() {
    let parse = |args: Vec<Value>, mut memory: usize| {
        RawChunk::parse(vec![map! {"arg" => args}], &mut memory).map(|_| memory).map_err(|error| error.status.as_u16())
    };
    let dense = format!("a=[{}]", "x,".repeat(1000));
    assert!(parse(vec!["x".into(); MAX_ARGUMENTS], 10_000_000).is_ok());
    assert_eq!(parse(vec!["x".into(); MAX_ARGUMENTS + 1], 10_000_000), Err(413));
    let left = parse(vec![dense.as_str().into()], 1 << 20).unwrap();
    assert!(left < (1 << 20) - 1000 * size_of::<Value>());
    // The limit is one for all arguments.
    assert_eq!(parse(vec![dense.as_str().into(); 20], 1 << 20), Err(413));
    let bomb = "a=[&a [x,x,x,x,x,x,x,x,x], &b [*a,*a,*a,*a,*a,*a,*a,*a,*a], &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]]";
    assert_eq!(parse(vec![bomb.into()], 1 << 20), Err(413));
    // Each form of `arg` is a list.
    for (arg, count) in [(Value::Nil, 0), ("x".into(), 1), (5.into(), 1), (brine_value::list!["x", "y=1"], 2)] {
        let chunks = RawChunk::parse(vec![map! {"arg" => arg}], &mut { 1 << 20 }).unwrap();
        assert_eq!(chunks[0].args.len(), count);
    }
}
