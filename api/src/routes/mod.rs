//! The table of resources, from which the router and the OpenAPI document are created.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::{FromRequestParts as _, Path, Request};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use brine_config::RestConfig;
use brine_value::{Value, list, map};
use futures::future::BoxFuture;
use tower::ServiceExt as _;

use crate::answer::{Answer, typed};
use crate::client::Client;
use crate::context::{RequestContext, failed};
use crate::error::{ApiError, StartError};
use crate::format::Format;
use crate::resources::{app, commands, console, events, hook, jobs, keys, login, web_socket};
use crate::{Api, format, headers, metrics};

use RoutePath::{App, Fixed, Static, Webhook};

type Handler = fn(RequestContext) -> BoxFuture<'static, Answer>;

/// The authentication that a resource requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Authentication {
    Public,
    /// A session or a token in the header or the cookie.
    Login,
    /// Credentials or a token in the body, or in the path.
    ByHandler,
}

/// The path of a resource.
#[derive(Debug, Clone, Copy)]
enum RoutePath {
    Fixed(&'static str),
    /// Below `webhook_url`, `app_path` and `static_path`.
    Webhook(&'static str),
    App(&'static str),
    Static(&'static str),
}

impl RoutePath {
    fn resolve(self, options: &RestConfig) -> String {
        match self {
            Fixed(path) => path.to_owned(),
            Webhook(rest) => format!("{}{rest}", options.webhook_url),
            App(rest) => format!("{}{rest}", options.app_path),
            Static(rest) => format!("{}{rest}", options.static_path),
        }
    }
}

/// A resource with one method.
struct Resource {
    method: Method,
    path: RoutePath,
    authentication: Authentication,
    about: &'static str,
    handler: Handler,
}

macro_rules! resources {
    ($($method:ident $path:expr, $authentication:ident, $about:literal, $handler:path;)*) => {
        &[$(Resource {
            method: Method::$method,
            path: $path,
            authentication: Authentication::$authentication,
            about: $about,
            handler: |context| Box::pin($handler(context)),
        }),*]
    };
}

const RESOURCES: &[Resource] = resources! {
    GET Fixed("/"), Public, "Returns the names of the clients.", commands::welcome;
    POST Fixed("/"), Login, "Runs the chunks of a lowstate.", commands::run_with_login;
    POST Fixed("/run"), ByHandler, "Runs the chunks of a lowstate with the credentials in each.", commands::run_with_credentials;
    GET Fixed("/login"), Public, "Asks for a login.", login::ask;
    POST Fixed("/login"), ByHandler, "Begins a session for username, password and eauth.", login::login;
    POST Fixed("/logout"), Login, "Ends the session and revokes its token.", login::logout;
    POST Fixed("/token"), ByHandler, "Returns a token for username, password and eauth.", login::token;
    GET Fixed("/minions"), Login, "Returns the grains of all minions.", commands::minions;
    GET Fixed("/minions/{id}"), Login, "Returns the grains of a minion.", commands::minions;
    POST Fixed("/minions"), Login, "Publishes jobs without waiting for returns.", commands::start_jobs;
    GET Fixed("/jobs"), Login, "Lists jobs. Query: function, target, user, since, until, failed, limit, before.", jobs::list;
    GET Fixed("/jobs/{jid}"), Login, "Returns a job with its returns.", jobs::show;
    GET Fixed("/keys"), Login, "Lists the keys of minions by state.", keys::list;
    GET Fixed("/keys/{id}"), Login, "Returns the fingerprint of a key.", keys::finger;
    POST Fixed("/keys"), ByHandler, "Generates and accepts a key for a new minion and returns it as a tar archive.", keys::generate;
    GET Fixed("/events"), Login, "Streams events as server-sent events. Query: since, tag.", events::follow;
    GET Fixed("/ws"), Login, "Streams events over a web socket. Query: since, tag, format_events.", web_socket::by_login;
    GET Fixed("/ws/{token}"), ByHandler, "The same with a token in the path.", web_socket::by_path;
    GET Fixed("/all_events/{token}"), ByHandler, "Streams events over a web socket, as rest_tornado.", web_socket::all_events;
    GET Fixed("/formatted_events/{token}"), ByHandler, "Streams the state of jobs and minions over a web socket, as rest_tornado.", web_socket::formatted_events;
    POST Webhook(""), ByHandler, "Publishes an event.", hook::publish;
    POST Webhook("/{*path}"), ByHandler, "Publishes an event with the path in its tag.", hook::publish;
    GET Fixed("/stats"), ByHandler, "Returns statistics of the API.", commands::stats;
    GET Fixed("/openapi.json"), Public, "Returns this description.", describe;
    GET App(""), Public, "Returns the application of the option app.", app::application;
    GET App("/{*path}"), Public, "The same: the application knows the rest of the path.", app::application;
    GET Static("/{*path}"), Public, "Returns a file of the option static.", app::static_file;
    GET Fixed("/favicon.ico"), Public, "Returns the icon of the option favicon.", app::icon;
    GET Fixed("/console"), Public, "Returns the console.", console::asset;
    GET Fixed("/console/systems"), Public, "Returns the names of the systems of external_auth by which users log in.", console::systems;
    GET Fixed("/console/{*path}"), Public, "Returns a file of the console.", console::asset;
};

/// Resources that exist only if sessions are available, as in Salt.
const SESSION_RESOURCES: &[&str] = &["/login", "/logout", "/minions", "/minions/{id}", "/jobs", "/jobs/{jid}"];

fn resources(options: &RestConfig) -> impl Iterator<Item = (&'static Resource, String)> {
    let has_sessions = options.enable_sessions;
    let all = RESOURCES.iter().map(|resource| (resource, resource.path.resolve(options)));
    all.filter(move |(_, path)| has_sessions || !SESSION_RESOURCES.contains(&path.as_str()))
}

/// Returns the router of the API.
pub(crate) fn router(api: &Arc<Api>) -> Result<Router, StartError> {
    let options = &api.options;
    let fixed: Vec<&str> = RESOURCES
        .iter()
        .filter_map(|one| if let Fixed(path) = one.path { path.split('/').nth(1) } else { None })
        .collect();
    let mut seen: Vec<&str> = Vec::new();
    for (name, url) in
        [("webhook_url", &options.webhook_url), ("app_path", &options.app_path), ("static_path", &options.static_path)]
    {
        let first = url.split('/').nth(1).unwrap_or_default();
        let is_taken = fixed.contains(&first) || seen.contains(&url.as_str()) || first.is_empty();
        if is_taken || url.contains(['{', '}', '*', '?', '#', '%']) {
            return Err(StartError::Invalid {
                name,
                reason: format!("expected a path that is not in use, got '{url}'"),
            });
        }
        seen.push(url);
    }
    let mut by_path: BTreeMap<String, MethodRouter> = BTreeMap::new();
    for (resource, path) in resources(options) {
        let filter = if resource.method == Method::POST { MethodFilter::POST } else { MethodFilter::GET };
        let (api, handler, authentication) = (Arc::clone(api), resource.handler, resource.authentication);
        let service = move |request: Request| handle(Arc::clone(&api), handler, authentication, request);
        let own = by_path.remove(&path).unwrap_or_default();
        by_path.insert(path, own.merge(on(filter, service)));
    }
    let mut router = Router::new();
    for (path, methods) in by_path {
        router = router.route(&path, methods);
    }
    let not_found = |request: Request| async move {
        failed(request.headers(), &ApiError::new(StatusCode::NOT_FOUND, "The resource does not exist"))
    };
    let not_allowed = |request: Request| async move {
        failed(request.headers(), &ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "The method is not allowed here"))
    };
    Ok(router.fallback(not_found).method_not_allowed_fallback(not_allowed))
}

/// Handles a request to a resource, after authenticating it.
async fn handle(api: Arc<Api>, handler: Handler, authentication: Authentication, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let param = Path::<String>::from_request_parts(&mut parts, &()).await.ok().map(|Path(param)| param);
    let Some(client) = parts.extensions.get::<Client>().cloned() else {
        return failed(&parts.headers, &ApiError::internal());
    };
    let headers = parts.headers.clone();
    let mut context = RequestContext::new(api, client, parts, body, param);
    let answered = async {
        if authentication == Authentication::Login {
            context.authenticate().await?;
        }
        handler(context).await
    };
    answered.await.unwrap_or_else(|error| failed(&headers, &error))
}

/// Answers a request, with the checks and headers common to all resources.
pub(crate) async fn answer(api: &Arc<Api>, router: Router, mut request: Request) -> Response {
    metrics::REQUESTS.add(1);
    api.requests.fetch_add(1, Ordering::Relaxed);
    let origin = request.headers().get(header::ORIGIN).cloned();
    let mut response = if let Some(error) = headers::wrong_host(request.version(), request.headers()) {
        failed(request.headers(), &error)
    } else if let Some(response) = headers::preflight(request.method(), request.headers()) {
        response
    } else if let Some(error) = bad_address(api, &request) {
        failed(request.headers(), &error)
    } else {
        without_trailing_slash(&mut request);
        if is_for_application(api, &request) {
            *request.uri_mut() = api.options.app_path.parse().unwrap_or_default();
        }
        // The router's errors are responses: its error type has no values.
        router.oneshot(request).await.unwrap_or_else(|never| match never {})
    };
    if response.status().is_client_error() || response.status().is_server_error() {
        metrics::REQUESTS_FAILED.add(1);
    }
    let hsts = headers::hsts(api.is_tls, api.options.hsts_max_age);
    headers::complete(&mut response, origin.as_ref(), &api.options.cors_origin, hsts.as_ref());
    response
}

fn bad_address(api: &Api, request: &Request) -> Option<ApiError> {
    let allowed = &api.options.authorized_ips;
    let address = request.extensions().get::<Client>()?.address;
    let is_allowed = allowed.is_empty()
        || allowed.iter().any(|one| one.parse::<IpAddr>().is_ok_and(|one| one.to_canonical() == address));
    if is_allowed {
        return None;
    }
    tracing::warn!(%address, "a request is refused: authorized_ips does not name its address");
    Some(ApiError::new(StatusCode::FORBIDDEN, "Bad IP"))
}

/// Removes trailing slashes from the path, which Salt tolerates.
fn without_trailing_slash(request: &mut Request) {
    let path = request.uri().path();
    let short = path.trim_end_matches('/');
    if short.len() == path.len() || path == "/" {
        return;
    }
    let short = if short.is_empty() { "/" } else { short };
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(uri) = format!("{short}{query}").parse::<Uri>() {
        *request.uri_mut() = uri;
    }
}

/// Whether the client receives the page of the single-page application instead of the resource.
fn is_for_application(api: &Api, request: &Request) -> bool {
    let path = request.uri().path();
    let own = [api.options.app_path.as_str(), &api.options.static_path, "/console", "/events", "/openapi.json"];
    api.options.app.is_some()
        && request.method().is_safe()
        && format::wants_page(request.headers())
        && !own.iter().any(|own| path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// Returns the OpenAPI description of the resources. It is written once: clients without a login ask for it.
async fn describe(context: RequestContext) -> Answer {
    let format = Format::accepted(context.headers())?;
    let api = &context.api;
    let description = api.descriptions[format as usize].get_or_init(|| format.write(&description(&api.options)).into());
    Ok(typed(format.content_type(), description.clone()))
}

fn description(options: &RestConfig) -> Value {
    let mut paths = brine_value::Map::new();
    for (resource, path) in resources(options) {
        let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let parameters: Value = names
            .map(|name| {
                let name = name.trim_start_matches('*');
                map! {"name" => name, "in" => "path", "required" => true, "schema" => map! {"type" => "string"}}
            })
            .collect();
        let answer = |text: &str| map! {"description" => text};
        let mut responses = map! {"200" => answer("The result")};
        let mut operation = map! {"summary" => resource.about, "parameters" => parameters};
        if resource.authentication != Authentication::Public {
            responses.insert("401".into(), answer("Not authenticated or not permitted").into());
        }
        if resource.authentication == Authentication::Login {
            operation.insert("security".into(), list![map! {"token" => list![]}, map! {"session" => list![]}]);
        }
        if resource.method == Method::POST {
            let content = map! {"application/json" => Value::map(), "application/x-yaml" => Value::map(), "application/x-www-form-urlencoded" => Value::map()};
            operation.insert("requestBody".into(), map! {"content" => content}.into());
        }
        operation.insert("responses".into(), responses.into());
        let path = Value::from(path.replace("{*", "{"));
        let methods = paths.entry(path).or_insert_with(Value::map);
        if let Some(methods) = methods.as_map_mut() {
            methods.insert(resource.method.as_str().to_ascii_lowercase().into(), operation.into());
        }
    }
    let schemes = map! {
        "token" => map! {"type" => "apiKey", "in" => "header", "name" => "X-Auth-Token"},
        "session" => map! {"type" => "apiKey", "in" => "cookie", "name" => crate::auth::COOKIE_NAME},
    };
    let document = map! {
        "openapi" => "3.1.0",
        "info" => map! {"title" => "Brine", "version" => brine_config::VERSION},
        "paths" => paths,
        "components" => map! {"securitySchemes" => schemes},
    };
    document.into()
}

#[cfg(test)]
mod tests;
