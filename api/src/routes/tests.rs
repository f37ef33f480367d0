use axum::body::Body;

use super::*;
use brine_config::MasterConfig;

fn api(options: RestConfig) -> Arc<Api> {
    let config = MasterConfig { netapi_enable_clients: vec!["local".to_owned()], ..MasterConfig::default() };
    Arc::new(Api::new(&config, options, "/nonexistent".into()).unwrap())
}

async fn ask(api: &Arc<Api>, method: &str, uri: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Request::builder().method(method).uri(uri).header("host", "test");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(Client::testing());
    answer(api, router(api).unwrap(), request).await
}

#[tokio::test]
async fn statuses_match_salt() {
    let api = api(RestConfig::default());
    for (method, uri, headers, status) in [
        ("GET", "/", &[][..], 200),
        ("HEAD", "/", &[], 200),
        ("GET", "//", &[], 200),
        ("GET", "/login/", &[], 200),
        ("GET", "/", &[("accept", "text/html")], 406),
        ("POST", "/", &[], 401),
        ("POST", "/logout", &[], 401),
        ("GET", "/minions/", &[], 401),
        ("GET", "/minions/web1", &[], 401),
        ("GET", "/jobs", &[("x-auth-token", "not hexadecimal")], 401),
        ("GET", "/stats", &[], 401),
        ("GET", "/events", &[], 401),
        ("GET", "/nothing", &[], 404),
        ("PUT", "/minions", &[], 405),
        ("GET", "/run", &[], 405),
        ("POST", "/run", &[], 400),
        ("POST", "/login", &[], 401),
        ("POST", "/hook/a/b", &[], 401),
        ("OPTIONS", "/", &[("access-control-request-method", "POST")], 200),
        ("OPTIONS", "/", &[("origin", "https://example.com")], 200),
        ("OPTIONS", "/", &[], 405),
        ("GET", "/openapi.json", &[], 200),
        ("GET", "/console", &[], 200),
        ("GET", "/console/nothing.js", &[], 404),
        ("GET", "/static/x", &[], 404),
        ("GET", "/app", &[], 404),
    ] {
        let response = ask(&api, method, uri, headers).await;
        assert_eq!(response.status().as_u16(), status, "{method} {uri}");
        assert!(response.headers().contains_key("access-control-allow-origin"), "{method} {uri}");
    }
    let response = ask(&api, "PUT", "/minions", &[]).await;
    assert!(response.headers()["allow"].to_str().unwrap().contains("POST"));
}

#[tokio::test]
async fn addresses_are_restricted() {
    let api = api(RestConfig { authorized_ips: vec!["10.1.2.3".to_owned()], ..RestConfig::default() });
    assert_eq!(ask(&api, "GET", "/", &[]).await.status(), 403);
}

#[tokio::test]
async fn browsers_get_the_application_for_any_page() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("index.html");
    std::fs::write(&page, "<p>hello").unwrap();
    std::fs::write(directory.path().join("x.js"), "1").unwrap();
    let options =
        RestConfig { app: Some(page), static_dir: Some(directory.path().to_owned()), ..RestConfig::default() };
    let api = api(options);
    let html = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    for (method, uri, headers, status, content_type) in [
        ("GET", "/", &[html][..], 200, "text/html"),
        ("GET", "/any/page", &[html], 200, "text/html"),
        ("GET", "/app/x", &[], 200, "text/html"),
        ("GET", "/", &[("accept", "*/*")], 200, "application/json"),
        ("GET", "/", &[], 200, "application/json"),
        ("POST", "/login", &[html], 401, "application/json"),
        ("GET", "/events", &[html], 401, "application/json"),
        ("GET", "/static/x.js", &[html], 200, "text/javascript"),
        ("GET", "/static/../../etc/passwd", &[], 404, "application/json"),
        ("GET", "/static/..%2f..%2fetc/passwd", &[], 404, "application/json"),
    ] {
        let response = ask(&api, method, uri, headers).await;
        let actual = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert_eq!((response.status().as_u16(), actual.split(';').next().unwrap()), (status, content_type), "{uri}");
    }
}

#[tokio::test]
async fn static_files_are_those_of_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("static");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(directory.path().join("secret"), "secret").unwrap();
    std::fs::write(root.join("sub/own"), "own").unwrap();
    for (link, target) in [
        ("file", "../secret"),
        ("absolute", "/etc/passwd"),
        ("directory", ".."),
        ("inside", "sub/own"),
        ("loop", "loop"),
    ] {
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
    }
    let api = api(RestConfig { static_dir: Some(root), ..RestConfig::default() });
    for (path, status) in [
        ("/static/sub/own", 200),
        ("/static/inside", 200),
        ("/static/file", 404),
        ("/static/absolute", 404),
        ("/static/directory/secret", 404),
        ("/static/loop", 404),
        ("/static/sub", 404),
    ] {
        assert_eq!(ask(&api, "GET", path, &[]).await.status().as_u16(), status, "{path}");
    }
    // The directory itself may be a link.
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("static", &link).unwrap();
    let api = self::api(RestConfig { static_dir: Some(link), ..RestConfig::default() });
    assert_eq!(ask(&api, "GET", "/static/sub/own", &[]).await.status(), 200);
}

#[test]
fn configured_urls_must_not_conflict_with_resources() {
    for url in ["/run", "/", "/{x}", "/events/x"] {
        let options = RestConfig { webhook_url: url.to_owned(), ..RestConfig::default() };
        assert!(matches!(router(&api(options)), Err(StartError::Invalid { name: "webhook_url", .. })), "{url}");
    }
}
