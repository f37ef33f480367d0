//! Jobs: `/jobs` and `/jobs/JID`.

use brine_value::{Map, Value, list, map};

use crate::answer::Answer;
use crate::context::RequestContext;
use crate::error::ApiError;

/// The maximum number of jobs on one page.
const MAX_PAGE: usize = 1000;
/// The maximum number of jobs whose returns are read for one page of failed jobs.
const MAX_READ: usize = 200;

/// Handles `GET /jobs/JID`.
pub(crate) async fn show(context: RequestContext) -> Answer {
    let job = context.runner("jobs.list_job", map! {"jid" => context.param()}).await?;
    let mut returns = Map::new();
    for (id, one) in job.get("Result").and_then(Value::as_map).into_iter().flatten() {
        returns.insert(id.clone(), one.get("return").cloned().unwrap_or_default());
    }
    context.reply(&map! {"info" => list![job], "return" => list![returns]}.into())
}

/// Handles `GET /jobs`. Without a query it returns all jobs, oldest first, as in Salt. With `limit` it returns the
/// newest ones; if there are more, `next` is the value of `before` for the next page.
pub(crate) async fn list(context: RequestContext) -> Answer {
    let page = Page::read(&context.query())?;
    let result = context.runner("jobs.list_jobs", page.search.clone()).await?;
    let jobs = match result {
        Value::Map(jobs) => jobs,
        other => return Err(ApiError::bad_request(other.to_string())),
    };
    let mut jobs: Vec<(String, Value)> = jobs.into_iter().map(|(jid, job)| (jid.to_string(), job)).collect();
    jobs.retain(|(jid, job)| page.matches(jid, job));
    jobs.sort_by(|(one, _), (other, _)| other.cmp(one));
    let (mut taken, mut next, mut looked_at) = (Vec::new(), None, 0);
    let limit = page.limit.unwrap_or(usize::MAX);
    let mut last = None;
    for (jid, job) in jobs {
        if taken.len() == limit || looked_at == MAX_READ {
            next.clone_from(&last);
            break;
        }
        last = Some(jid.clone());
        if page.failed {
            looked_at += 1;
            let successes = context.runner("jobs.exit_success", map! {"jid" => &jid}).await?;
            let has_failed =
                successes.as_map().is_some_and(|all| all.values().any(|success| success.as_bool() == Some(false)));
            if !has_failed {
                continue;
            }
        }
        taken.push((Value::from(jid), job));
    }
    taken.reverse();
    let mut body = map! {"return" => list![taken.into_iter().collect::<Map>()]};
    body.extend(next.map(|jid| ("next".into(), jid.into())));
    context.reply(&body.into())
}

/// The query of a list of jobs.
#[derive(Debug, Default, PartialEq)]
struct Page {
    /// The arguments of `jobs.list_jobs`.
    search: Map,
    user: Option<String>,
    before: Option<String>,
    failed: bool,
    limit: Option<usize>,
}

impl Page {
    fn read(query: &[(String, String)]) -> Result<Self, ApiError> {
        let mut page = Page::default();
        for (name, value) in query {
            let wrong = |expected: &str| ApiError::bad_request(format!("'{name}' is invalid: expected {expected}"));
            let mut search = |argument: &str| _ = page.search.insert(argument.into(), value.as_str().into());
            match name.as_str() {
                "function" | "search_function" => search("search_function"),
                "target" | "search_target" => search("search_target"),
                "since" | "start_time" => search("start_time"),
                "until" | "end_time" => search("end_time"),
                "user" => page.user = Some(value.clone()),
                "before" if value.len() == 20 && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                    page.before = Some(value.clone());
                }
                "before" => return Err(wrong("a job id of 20 digits")),
                "failed" => {
                    page.failed = match value.to_ascii_lowercase().as_str() {
                        "" | "1" | "true" | "yes" => true,
                        "0" | "false" | "no" => false,
                        _ => return Err(wrong("true or false")),
                    }
                }
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
                    page.limit = Some(limit.ok_or_else(|| wrong("a number from 1 to 1000"))?);
                }
                // Ignored, as in Salt.
                "timeout" => {}
                other => {
                    let names = "function, target, user, since, until, failed, limit, before";
                    return Err(ApiError::bad_request(format!(
                        "'{other}' is not a parameter: expected one of {names}"
                    )));
                }
            }
        }
        Ok(page)
    }

    fn matches(&self, jid: &str, job: &Value) -> bool {
        self.before.as_deref().is_none_or(|before| jid < before)
            && self.user.as_deref().is_none_or(|user| job.get("User").and_then(Value::as_str) == Some(user))
    }
}

impl RequestContext {
    /// Calls a runner function on behalf of the sender.
    async fn runner(&self, fun: &str, kwarg: Map) -> Result<Value, ApiError> {
        let chunk = map! {"client" => "runner", "fun" => fun, "kwarg" => kwarg};
        let answers = self.run(vec![crate::lowstate::RawChunk::own(chunk)], Some(&self.sender()?.token)).await?;
        Ok(answers.into_iter().next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Page, ApiError> {
        Page::read(&form_urlencoded::parse(query.as_bytes()).into_owned().collect::<Vec<_>>())
    }

    #[test]
    fn queries_select_jobs() {
        let page = read("function=test.*&target=web*&user=fred&since=2026-11-20&failed=true&limit=5").unwrap();
        let search = map! {"search_function" => "test.*", "search_target" => "web*", "start_time" => "2026-11-20"};
        assert_eq!(page, Page { search, user: Some("fred".into()), failed: true, limit: Some(5), before: None });
        for wrong in ["limit=0", "limit=x", "limit=1001", "before=5", "failed=maybe", "usr=fred"] {
            assert_eq!(read(wrong).unwrap_err().status, 400, "{wrong}");
        }
        let page = read("before=20261121000000000000&user=fred").unwrap();
        let of = |user: &str| -> Value { map! {"User" => user}.into() };
        assert!(page.matches("20261120235959999999", &of("fred")));
        assert!(!page.matches("20261121000000000000", &of("fred")));
        assert!(!page.matches("20261120235959999999", &of("ann")));
    }
}
