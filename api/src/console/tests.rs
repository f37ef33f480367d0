use super::*;

fn get(name: &str, tag: Option<&str>) -> Option<Response> {
    let tag = tag.map(|tag| (header::IF_NONE_MATCH, HeaderValue::from_str(tag).unwrap()));
    response(name, &tag.into_iter().collect())
}

#[test]
fn files_are_served_with_a_strict_policy() {
    for (name, content_type) in [("", HTML), ("index.html", HTML), ("app.js", SCRIPT), ("console.css", STYLE)] {
        let response = get(name, None).unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], content_type);
        assert_eq!(response.headers()[header::CONTENT_SECURITY_POLICY], POLICY);
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache");
    }
    assert!(POLICY.starts_with("default-src 'none'; ") && !POLICY.contains("unsafe"));
}

#[test]
fn other_paths_do_not_exist() {
    for name in ["nothing", "../Cargo.toml", "/etc/passwd", "index.html/", "APP.JS", "..%2fCargo.toml"] {
        assert!(get(name, None).is_none(), "{name}");
    }
}

#[test]
fn a_current_copy_is_not_resent() {
    let tag = get("app.js", None).unwrap().headers()[header::ETAG].to_str().unwrap().to_owned();
    for (sent, status) in [
        (tag.clone(), StatusCode::NOT_MODIFIED),
        (format!("W/{tag}"), StatusCode::NOT_MODIFIED),
        (format!("\"other\", {tag}"), StatusCode::NOT_MODIFIED),
        ("\"other\"".to_owned(), StatusCode::OK),
    ] {
        let response = get("app.js", Some(&sent)).unwrap();
        assert_eq!(response.status(), status, "{sent}");
        assert_eq!(response.headers()[header::ETAG], tag.as_str());
    }
}

#[test]
fn clients_that_accept_gzip_get_compressed_files() {
    for (accepted, compressed) in [
        (Some("gzip"), true),
        (Some("deflate, GZIP;q=0.5, br"), true),
        (Some("gzip;q=0"), false),
        (Some("identity"), false),
        (None, false),
    ] {
        let codings = accepted.map(|codings| (header::ACCEPT_ENCODING, HeaderValue::from_static(codings)));
        let response = response("app.js", &codings.into_iter().collect()).unwrap();
        assert_eq!(response.headers().contains_key(header::CONTENT_ENCODING), compressed, "{accepted:?}");
    }
    let size: usize = COMPRESSED.iter().map(Bytes::len).sum();
    assert!(size < 60_000 && COMPRESSED.iter().all(|body| !body.is_empty()), "{size}");
}

#[test]
fn the_bundle_is_small_and_self_contained() {
    let size: usize = SERVED.iter().map(Bytes::len).sum();
    assert!(size < 156_000, "{size}");
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/console")).unwrap().count();
    assert_eq!(files, ASSETS.len());
    for asset in ASSETS {
        let text = std::str::from_utf8(asset.body).unwrap();
        assert!(text.lines().count() < 500, "{}", asset.name);
        let forbidden =
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "https://"];
        for word in forbidden {
            assert!(!text.contains(word), "{} has {word}", asset.name);
        }
        // XML namespace names look like addresses, but are never fetched.
        assert!(!text.replace("http://www.w3.org/2000/svg", "").contains("http://"), "{}", asset.name);
    }
}

#[test]
fn files_are_served_without_indentation_and_comments() {
    let of = |body: &'static str| served(&Asset { name: "x.js", content_type: SCRIPT, body: body.as_bytes() });
    let text = "// about\n/**\n * more\n */\nif (a) {\n  b(); // kept\n\n  /* one */\n  c('//x');\n}\n";
    assert_eq!(of(text), "if (a) {\nb(); // kept\nc('//x');\n}\n");
    // A line that ends within a text would lose its indentation.
    for asset in ASSETS.iter().filter(|asset| asset.content_type == SCRIPT) {
        let text = std::str::from_utf8(asset.body).unwrap();
        for line in text.lines() {
            assert!(line.matches('`').count() % 2 == 0, "{}: {line}", asset.name);
        }
    }
}
