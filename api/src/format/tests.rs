use super::*;
use brine_value::{list, map};

fn headers(name: header::HeaderName, value: Option<&str>) -> HeaderMap {
    value.into_iter().map(|value| (name.clone(), value.parse().unwrap())).collect()
}

#[test]
fn the_format_follows_the_accept_header() {
    for (accept, format) in [
        (None, Some(Format::Json)),
        (Some("*/*"), Some(Format::Json)),
        (Some("application/json"), Some(Format::Json)),
        (Some("application/x-yaml"), Some(Format::Yaml)),
        (Some("application/json;q=0.5, application/x-yaml"), Some(Format::Yaml)),
        (Some("application/x-yaml;q=0.5, application/json;q=0.9"), Some(Format::Json)),
        (Some("text/html,application/xhtml+xml,*/*;q=0.8"), Some(Format::Json)),
        (Some("application/json;q=0"), None),
        (Some("text/html"), None),
        (Some("text/yaml"), None),
    ] {
        assert_eq!(Format::accepted(&headers(header::ACCEPT, accept)).ok(), format, "{accept:?}");
    }
    for (accept, wants) in [(Some("text/html"), true), (Some("*/*"), false), (Some("application/json"), false)] {
        assert_eq!(wants_page(&headers(header::ACCEPT, accept)), wants, "{accept:?}");
    }
}

#[tokio::test]
async fn bodies_are_parsed_by_their_content_type() {
    let json = r#"{"a": [1, "x"]}"#;
    let data: Value = map! {"a" => list![1, "x"]}.into();
    for (kind, body, expected) in [
        (Some("application/json"), json, Ok(data.clone())),
        (Some("application/json;charset=UTF-8"), json, Ok(data.clone())),
        (Some("text/plain;charset=UTF-8"), json, Ok(data.clone())),
        (Some("text/plain"), "no json", Ok("no json".into())),
        (Some("application/x-yaml"), "a: [1, x]", Ok(data.clone())),
        (Some("text/yaml"), "a: [1, x]", Ok(data)),
        (None, "a=1&b=2&b=3", Ok(map! {"a" => "1", "b" => list!["2", "3"]}.into())),
        (Some("application/json"), "{", Err(400)),
        (Some("application/x-yaml"), "a: [", Err(400)),
        (Some("application/xml"), "<a/>", Err(406)),
    ] {
        let (headers, body) = (headers(header::CONTENT_TYPE, kind), Bytes::from_static(body.as_bytes()));
        let owner = Owner::of_address([10, 0, 0, 1].into());
        let read = Payload::parse(&headers, body.clone(), &Arc::default(), owner, 100_000).await;
        let read = read.map(|payload| payload.data.unwrap()).map_err(|error| error.status.as_u16());
        assert_eq!(read, expected, "{kind:?} {body:?}");
    }
}

#[test]
fn forms_parse_arguments_like_command_lines() {
    for (text, expected) in [
        ("client=local&tgt=*&fun=test.ping", map! {"client" => "local", "tgt" => "*", "fun" => "test.ping"}),
        ("arg=1", map! {"arg" => list![1]}),
        ("arg=1&arg=2&arg=x", map! {"arg" => list![1, 2, "x"]}),
        ("arg=[1,2]", map! {"arg" => list![list![1, 2]]}),
        ("arg=[1,2]&arg=3", map! {"arg" => list![list![1, 2], 3]}),
        ("arg=one%3D1", map! {"arg" => list!["one=1"]}),
        ("arg=", Map::new()),
        ("kwarg={a: 1}", map! {"kwarg" => map! {"a" => 1}}),
        ("tgt=a&tgt=b&tgt=c", map! {"tgt" => list!["a", "b", "c"]}),
        ("fun=", Map::new()),
    ] {
        assert_eq!(form(text, &mut { 100_000 }).unwrap(), expected, "{text}");
    }
}

#[test]
fn a_lowstate_is_a_list_of_chunks() {
    let chunk = map! {"fun" => "test.ping"};
    for (data, expected) in [
        (Some(Value::from(chunk.clone())), Ok(vec![chunk.clone()])),
        (Some(list![chunk.clone(), chunk.clone()]), Ok(vec![chunk.clone(), chunk])),
        (Some(list![]), Ok(vec![])),
        (None, Err("Lowstates must be a list")),
        (Some("text".into()), Err("Lowstates must be a list")),
        (Some(Value::map()), Err("Lowstates must be a list")),
        (Some(list![1]), Err("A lowstate must be a list of mappings")),
    ] {
        let read = Payload { data: data.clone(), ..Payload::default() }.lowstate();
        assert_eq!(read.map_err(|error| error.message), expected.map_err(str::to_owned), "{data:?}");
    }
}

#[tokio::test]
async fn bodies_are_limited_by_the_memory_of_their_value() {
    let size = 60_000;
    let repeated = |text: &str| text.repeat(size / text.len());
    let anchored = format!("- &a [x, x, x, x]\n- [{}]\n", repeated("*a,"));
    for (kind, body) in [
        ("application/json", format!("[{}1]", repeated("[],"))),
        ("application/json", format!("[{}1]", repeated(r#"{"":1},"#))),
        ("text/plain", format!("[{}1]", repeated("[],"))),
        ("application/x-yaml", format!("[{}]", repeated("a,"))),
        ("application/x-yaml", repeated("- \n")),
        ("application/x-yaml", anchored),
        ("application/x-www-form-urlencoded", repeated("arg=1&")),
        ("application/x-www-form-urlencoded", repeated("a=b&")),
        ("application/x-www-form-urlencoded", format!("arg=[{}]", repeated("a,"))),
        ("application/x-www-form-urlencoded", "arg=[%26a [x,x,x,x,x,x,x],%26b [*a,*a,*a,*a,*a,*a,*a],%26c [*b,*b,*b,*b,*b,*b,*b],[*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]]".to_owned()),
    ] {
        let owner = Owner::of_address([10, 0, 0, 1].into());
        let limit = crate::limits::value_limit(body.len(), false);
        let headers = headers(header::CONTENT_TYPE, Some(kind));
        let refused = Payload::parse(&headers, body.clone().into(), &Arc::default(), owner, limit).await;
        let status = refused.map_err(|error| error.status.as_u16()).map(|payload| payload.memory);
        assert_eq!(status, Err(413), "{kind} {}", &body[..30.min(body.len())]);
    }
}
