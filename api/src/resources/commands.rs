//! Commands: `/`, `/run`, `/minions`, and `/stats`.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use brine_value::{Map, Value, list, map};

use crate::answer::Answer;
use crate::context::RequestContext;
use crate::lowstate::{Client, RawChunk};
use crate::metrics;

/// Handles `GET /`: returns the names of the clients.
pub(crate) async fn welcome(context: RequestContext) -> Answer {
    let clients: Value = Client::ALL.iter().map(|(name, _)| *name).collect();
    context.reply(&map! {"return" => "Welcome", "clients" => clients}.into())
}

/// Handles `POST /`: runs a lowstate with the credentials of the session.
pub(crate) async fn run_with_login(mut context: RequestContext) -> Answer {
    let lowstate = context.lowstate().await?;
    let token = context.sender()?.token.clone();
    let answers = context.run(lowstate, Some(&token)).await?;
    context.reply(&map! {"return" => answers}.into())
}

/// Handles `POST /run`: runs a lowstate with the credentials in its chunks.
pub(crate) async fn run_with_credentials(mut context: RequestContext) -> Answer {
    let lowstate = context.lowstate().await?;
    let answers = context.run(lowstate, None).await;
    if answers.is_ok() {
        context.client.slot.authenticate();
    }
    context.reply(&map! {"return" => answers?}.into())
}

/// Handles `GET /minions` and `GET /minions/ID`: returns the grains of minions.
pub(crate) async fn minions(context: RequestContext) -> Answer {
    let tgt = context.param.clone().unwrap_or_else(|| "*".to_owned());
    let chunk = map! {"client" => "local", "tgt" => tgt, "fun" => "grains.items"};
    let answers = context.run(vec![RawChunk::own(chunk)], Some(&context.sender()?.token)).await?;
    context.reply(&map! {"return" => answers}.into())
}

/// Handles `POST /minions`: publishes jobs without waiting for returns.
pub(crate) async fn start_jobs(mut context: RequestContext) -> Answer {
    let mut lowstate = context.lowstate().await?;
    for chunk in &mut lowstate {
        chunk.fields.insert("client".into(), "local_async".into());
    }
    let answers = context.run(lowstate, Some(&context.sender()?.token)).await?;
    let jids = answers.iter().filter_map(|answer| answer.get("jid")?.as_str());
    let links: Value = jids.map(|jid| map! {"href" => format!("/jobs/{jid}")}).collect();
    let mut response = context.reply(&map! {"return" => answers, "_links" => map! {"jobs" => links}}.into())?;
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

/// Handles `GET /stats`.
pub(crate) async fn stats(mut context: RequestContext) -> Answer {
    if !context.api.options.stats_disable_auth {
        context.authenticate().await?;
    }
    let api = &context.api;
    let (now, uptime) = (crate::auth::now(), api.started.elapsed().as_secs_f64());
    let requests = api.requests.load(Ordering::Relaxed);
    let count = |value: i64| Value::from(value);
    let mut statistics: Map = map! {
        "Current Time" => now,
        "Start Time" => now - uptime,
        "Uptime" => uptime,
        "Enabled" => true,
        "Total Requests" => requests,
        "Requests/Second" => requests as f64 / uptime.max(1.0),
        "Current Requests" => count(metrics::CONNECTIONS.get()),
        "Slow Queries" => list![],
    };
    statistics.insert("Requests".into(), Value::map());
    let own: Map = brine_metrics::pairs().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    context.reply(&map! {"CherryPy Applications" => statistics, "Brine" => own}.into())
}
