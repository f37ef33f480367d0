use super::*;
use brine_value::{list, map};

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        (name.parse::<axum::http::HeaderName>().unwrap(), value.parse::<axum::http::HeaderValue>().unwrap())
    };
    pairs.iter().map(pair).collect()
}

fn auth() -> Auth {
    let opts = map! {"external_auth" => map! {"file" => map! {
        "fred" => list![map! {"web*" => list!["test.ping"]}, "@jobs", ".*", "@jobs"],
        "ops%" => list!["network.*"],
        "*" => list!["sys.doc"],
    }}};
    let config = MasterConfig { opts, ..MasterConfig::default() };
    Auth::new(Arc::new(Master::new(&config, "/nonexistent".into())), &config)
}

fn token(secret: &str) -> Map {
    map! {"name" => "fred", "eauth" => "file", "groups" => list!["ops"], "expire" => now() + 60.0, "token" => secret}
}

#[test]
fn the_header_has_precedence_over_the_cookie() {
    for (pairs, expected) in [
        (&[("x-auth-token", "abc"), ("cookie", "session_id=def")][..], Some(("abc", false))),
        (&[("x-auth-token", ""), ("cookie", "a=b; session_id=def")], Some(("def", true))),
        (&[("cookie", "session_id=\"def\"")], Some(("def", true))),
        (&[("cookie", "other=1"), ("cookie", "session_id=x")], Some(("x", true))),
        (&[("cookie", "session_id=")], None),
        (&[], None),
    ] {
        let actual = credential(&headers(pairs));
        assert_eq!(actual.as_ref().map(|(secret, is_cookie)| (secret.as_str(), *is_cookie)), expected, "{pairs:?}");
    }
}

#[test]
fn cookies_are_refused_from_other_sites() {
    let allowed = ["https://gui.example".to_owned()];
    let (far, own) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([127, 0, 0, 1]));
    let proxied = ("x-forwarded-proto", "https");
    for (is_tls, peer, pairs, accepted) in [
        (true, far, &[("host", "api:8000")][..], true),
        (true, far, &[("host", "api:8000"), ("origin", "https://api:8000")], true),
        (true, far, &[("host", "api:8000"), ("origin", "https://evil")], false),
        (true, far, &[("host", "api:8000"), ("origin", "null")], false),
        (true, far, &[("origin", "https://evil")], false),
        (true, far, &[("origin", "https://")], false),
        (true, far, &[("host", "api:8000"), ("origin", "https://gui.example")], true),
        (true, far, &[("host", "api:8000"), ("sec-fetch-site", "cross-site")], false),
        (true, far, &[("host", "api:8000"), ("sec-fetch-site", "same-origin")], true),
        // A page of the same host by another scheme is another page.
        (true, far, &[("host", "api:8000"), ("origin", "http://api:8000")], false),
        (true, own, &[("host", "api:8000"), ("origin", "http://api:8000"), proxied], false),
        (false, far, &[("host", "api:8000"), ("origin", "http://api:8000")], true),
        (false, far, &[("host", "api:8000"), ("origin", "https://api:8000")], false),
        (false, far, &[("host", "api:8000"), ("origin", "ftp://api:8000")], false),
        // A proxy with TLS in front.
        (false, far, &[("host", "api:8000"), ("origin", "https://api:8000"), proxied], true),
        (false, own, &[("host", "api:8000"), ("origin", "https://api:8000")], true),
        (false, own, &[("host", "api:8000"), ("origin", "https://evil"), proxied], false),
    ] {
        let headers = headers(pairs);
        let checked = check_origin(&headers, Origins::of(&allowed, is_tls, peer, &headers));
        assert_eq!(checked.is_ok(), accepted, "{is_tls} {peer} {pairs:?}");
    }
    let any = headers(&[("host", "api:8000"), ("origin", "https://any")]);
    assert_eq!(check_origin(&any, Origins::of(&["*".to_owned()], true, far, &any)), Ok(()));
}

#[tokio::test]
async fn sessions_refer_to_tokens_until_they_end() {
    let auth = auth();
    let peer = IpAddr::from([10, 0, 0, 1]);
    let secret = "a".repeat(TOKEN_LENGTH);
    let (id, user) = auth.begin(&token(&secret)).unwrap();
    assert_eq!((id.len(), user.identity.username().as_str()), (SESSION_LENGTH, "fred"));
    let session = auth.by_secret(&id, peer).await.unwrap();
    assert_eq!(*session.token, secret);
    for wrong in ["", "xyz", "abc", &"b".repeat(SESSION_LENGTH)] {
        assert_eq!(auth.by_secret(wrong, peer).await.unwrap_err(), ApiError::no_session(), "{wrong}");
    }
    let cookie = headers(&[("cookie", &format!("session_id={id}")), ("host", "h"), ("origin", "http://evil")]);
    let origins = Origins { allowed: &[], schemes: &["http"] };
    let get = auth.authenticate(&cookie, &Method::GET, false, origins, peer).await;
    assert!(get.is_ok());
    for (method, is_upgrade) in [(Method::POST, false), (Method::GET, true)] {
        let refused = auth.authenticate(&cookie, &method, is_upgrade, origins, peer).await;
        assert_eq!(refused.unwrap_err().status, 403);
    }
    auth.end(&session);
    assert!(session.ended.is_cancelled());
    assert!(auth.by_secret(&id, peer).await.is_err());
}

#[test]
fn sessions_and_confirmed_tokens_are_bounded() {
    let auth = auth();
    {
        let mut state = auth.state.lock();
        let user = Arc::new(User::of_token(&token("x")).unwrap());
        // None of them ends while a busy machine adds the others.
        let at = Instant::now() + Duration::from_hours(1);
        for number in 0..MAX_SESSIONS {
            state.confirmed.insert(number.to_string(), (Arc::clone(&user), at));
        }
    }
    auth.begin(&token(&"a".repeat(TOKEN_LENGTH))).unwrap();
    assert_eq!(auth.state.lock().confirmed.len(), MAX_SESSIONS * 9 / 10 + 1);
}

#[test]
fn permissions_are_deduplicated_with_strings_first() {
    let auth = auth();
    let user = User::of_token(&token("x")).unwrap();
    let expected = list![".*", "@jobs", "network.*", map! {"web*" => list!["test.ping"]}];
    assert_eq!(Value::List(auth.permissions(&user)), expected);
    let fixed = User { identity: user.identity.clone().with_entries(Some(vec!["test.*".into()])), ..user };
    assert_eq!(auth.permissions(&fixed), ["test.*".into()]);
}
