//! What a running master and its minions answer.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use brine_config::{MasterConfig, SALT_VERSION};
use brine_doctor::finding::quoted;
use brine_doctor::keys::{named, shown_age};
use brine_doctor::{Daemon, Finding, Installation, Role, kinds};
use brine_function::Args;
use brine_value::{Map, Value, list};

use crate::cli::client::{ClientError, MasterClient};

/// The timeout of a question to the master itself.
const TIMEOUT: Duration = Duration::from_secs(4);
/// The time that minions have to answer, in seconds.
const ANSWER: i64 = 3;
/// The maximum number of minions that are asked.
const ASKED: usize = 1000;
/// The difference of clocks that is reported, in seconds.
const DIFFERENCE: f64 = 10.0;
/// The number of characters of a version that are shown.
const MAX_VERSION: usize = 30;
/// The number of events from which a subscriber is behind.
const BEHIND: i64 = 1000;

/// Asks the master and its minions. Returns the findings and the master's metrics.
pub(super) async fn examine(
    config: &MasterConfig,
    installation: &Installation,
    daemon: &Daemon,
) -> (Vec<Finding>, Option<Map>) {
    if daemon.process.as_ref().is_none_or(|process| "Tt".contains(process.state)) {
        return (Vec::new(), None);
    }
    let client = match MasterClient::new(config) {
        Ok(client) => client,
        Err(error) => return (vec![not_asked(&error)], None),
    };
    let ask = |fun: &'static str| {
        let asked = client.ask_runner(fun, Args::default());
        async move { tokio::time::timeout(TIMEOUT, asked).await }
    };
    let hung = |why: &dyn std::fmt::Display| {
        Finding::new(&kinds::DAEMON_HUNG, Role::Master, "the master does not answer its own tools")
            .at(format!("port {}", config.ret_port))
            .because(why)
            .mended_by(daemon.restart_command(installation))
    };
    let (fleet, metrics, overview) = futures::join!(ask("fleet.minions"), ask("metrics.show"), ask("fleet.overview"));
    let fleet = match fleet {
        Err(_) => return (vec![hung(&format!("no answer within {} s", TIMEOUT.as_secs()))], None),
        Ok(Err(error @ ClientError::NoMaster(_))) => return (vec![hung(&error)], None),
        Ok(Err(error)) => return (vec![not_asked(&error)], None),
        Ok(Ok(fleet)) => fleet,
    };
    let mut findings = Vec::new();
    let metrics = metrics.ok().and_then(Result::ok).and_then(|metrics| metrics.as_map().cloned());
    findings.extend(metrics.as_ref().map(|metrics| of_metrics(metrics, installation, daemon)).unwrap_or_default());
    let letters = overview.ok().and_then(Result::ok).and_then(|overview| overview.get("dead_letters")?.as_i64());
    if let Some(letters) = letters.filter(|letters| *letters > 0) {
        let options = installation.options();
        findings.push(
            Finding::new(&kinds::DEAD_LETTERS, Role::Master, format!("{letters} reactions have failed for good"))
                .at("reactor")
                .because("their retries have failed, too; their events are kept")
                .mended_by(format!("salt-run{options} reactor.failed; salt-run{options} reactor.retry all")),
        );
    }
    let minions = Minions::read(&fleet);
    let asked: Vec<&str> = minions.connected.iter().take(ASKED).map(String::as_str).collect();
    let answers = answers(&client, &asked).await;
    findings.extend(minions.silent(installation, answers.as_ref()));
    findings.extend(minions.versions());
    (findings, metrics)
}

fn not_asked(error: &ClientError) -> Finding {
    Finding::new(&kinds::NOT_SEEN, Role::Master, "the master could not be asked about its minions, reactions and store")
        .at("the running master")
        .because(error)
        .mended_by("sudo brine doctor   # with the same options")
}

/// The answer of a minion: how far its clock is ahead of this host's, in seconds.
type Answers = BTreeMap<String, Option<f64>>;

/// Asks minions for their time. `None` if the job could not be published.
async fn answers(client: &MasterClient, ids: &[&str]) -> Option<Answers> {
    if ids.is_empty() {
        return Some(Answers::new());
    }
    let mut args = Args {
        positional: vec![ids.iter().copied().map(Value::from).collect::<Vec<_>>().into(), "status.time".into()],
        ..Args::default()
    };
    args.keyword.insert("tgt_type".into(), "list".into());
    args.keyword.insert("arg".into(), list!["%s"]);
    args.keyword.insert("timeout".into(), ANSWER.into());
    let before = now();
    let asked = client.ask_runner("salt.execute", args);
    let wait = TIMEOUT + Duration::from_secs(ANSWER.unsigned_abs());
    let returned = tokio::time::timeout(wait, asked).await.ok()?.ok()?;
    let after = now();
    let ahead = |value: &Value| {
        let time: f64 = value.to_string().trim().parse().ok()?;
        // The answer has whole seconds.
        Some(if time < before - 1.0 { time - before } else { (time - after).max(0.0) })
    };
    let map = returned.as_map()?;
    Some(map.iter().map(|(id, value)| (id.to_string(), ahead(value))).collect())
}

fn now() -> f64 {
    jiff::Timestamp::now().as_millisecond() as f64 / 1000.0
}

fn of_metrics(metrics: &Map, installation: &Installation, daemon: &Daemon) -> Vec<Finding> {
    let mut findings = Vec::new();
    let number = |name: &str| metrics.get(name).and_then(Value::as_i64).unwrap_or(0);
    if number("brine_store_failed") > 0 {
        let store = installation.store.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        findings.push(
            Finding::new(&kinds::STORE_FAILED, Role::Master, "the store refuses writes: no job and no event is kept")
                .at(store)
                .because("the disk is full, read-only or broken: see the master's log")
                .mended_by(format!(
                    "tail {}; {}",
                    quoted(&installation.log_file),
                    daemon.restart_command(installation)
                )),
        );
    }
    for (name, value) in metrics {
        let name = name.to_string();
        let Some(subscriber) = name.strip_prefix("brine_subscriber_lag_events{subscriber=\"") else { continue };
        let (subscriber, lag) = (subscriber.trim_end_matches("\"}"), value.as_i64().unwrap_or(0));
        if lag >= BEHIND {
            findings.push(
                Finding::new(&kinds::REACTOR_BEHIND, Role::Master, format!("{subscriber} has {lag} events to handle"))
                    .at(subscriber)
                    .because(
                        "it handles them more slowly than they arrive; none is lost as long as the journal has them",
                    )
                    .mended_by(format!(
                        "salt-run{} metrics.show; tail {}",
                        installation.options(),
                        quoted(&installation.log_file)
                    )),
            );
        }
    }
    findings
}

/// What the master knows about its accepted minions.
#[derive(Default)]
struct Minions {
    connected: Vec<String>,
    never: Vec<String>,
    /// The ids with the time since they were seen.
    away: Vec<(String, Option<Duration>)>,
    /// The ids by version.
    versions: BTreeMap<String, Vec<String>>,
}

impl Minions {
    fn read(fleet: &Value) -> Self {
        let mut minions = Minions::default();
        let mut denied = BTreeSet::new();
        let now = fleet.get("time").and_then(Value::as_i64).unwrap_or(0);
        for one in fleet.get("minions").and_then(Value::as_list).unwrap_or_default() {
            let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let id = text("id");
            match text("state").as_str() {
                "connected" => minions.connected.push(id.clone()),
                "never" => minions.never.push(id.clone()),
                "away" => {
                    let seen = one.get("seen").and_then(Value::as_i64);
                    let ago = seen.and_then(|seen| u64::try_from(now - seen).ok()).map(Duration::from_micros);
                    minions.away.push((id.clone(), ago));
                }
                "minions_denied" => {
                    denied.insert(id);
                    continue;
                }
                _ => continue,
            }
            // A minion says what it likes.
            let version: String = text("version").chars().take(MAX_VERSION).collect();
            if !version.is_empty() {
                minions.versions.entry(version).or_default().push(id);
            }
        }
        // Why they do not come is known: they have another key.
        minions.never.retain(|id| !denied.contains(id));
        minions.away.retain(|(id, _)| !denied.contains(id));
        minions
    }

    /// Returns the minions that do not answer, with the most probable cause, and those with another time.
    fn silent(&self, installation: &Installation, answers: Option<&Answers>) -> Vec<Finding> {
        let mut findings = Vec::new();
        let options = installation.options();
        let ids =
            |ids: &[String]| quoted(std::path::Path::new(&ids.iter().take(10).cloned().collect::<Vec<_>>().join(",")));
        if !self.never.is_empty() {
            findings.push(
                Finding::new(&kinds::MINION_NEVER, Role::Master, format!("{} were never seen", named(&self.never)))
                    .at("accepted keys")
                    .because(
                        "the minion does not run, cannot reach port 4505 of this master, or has another key by now",
                    )
                    .mended_by("# on the minion: sudo brine doctor"),
            );
        }
        if !self.away.is_empty() {
            let names: Vec<String> = self
                .away
                .iter()
                .map(|(id, ago)| match ago {
                    Some(ago) => format!("{id} (seen {} ago)", shown_age(*ago)),
                    None => format!("{id} (not seen since yesterday)"),
                })
                .collect();
            let away: Vec<String> = self.away.iter().map(|(id, _)| id.clone()).collect();
            findings.push(
                Finding::new(&kinds::MINION_AWAY, Role::Master, format!("{} are not connected", named(&away)))
                    .at("accepted keys")
                    .because(format!("the host or its minion is down, or the network: {}", named(&names)))
                    .mended_by(format!(
                        "# on the minion: sudo brine doctor; if it is gone for good: salt-key{options} -d {}",
                        ids(&away)
                    )),
            );
        }
        let Some(answers) = answers else { return findings };
        let silent: Vec<String> =
            self.connected.iter().take(ASKED).filter(|id| !answers.contains_key(*id)).cloned().collect();
        if !silent.is_empty() {
            findings.push(
                Finding::new(&kinds::MINION_SILENT, Role::Master, format!("{} do not answer", named(&silent)))
                    .at("connected minions")
                    .because(format!("they are connected, and have not answered within {ANSWER} s: the daemon is stopped or overloaded"))
                    .mended_by("# on the minion: systemctl restart brine-minion, or sudo brine doctor"),
            );
        }
        let wrong: Vec<String> = answers
            .iter()
            .filter_map(|(id, ahead)| Some((id, ahead.filter(|ahead| ahead.abs() >= DIFFERENCE)?)))
            .map(|(id, ahead)| format!("{id} ({ahead:+.0} s)"))
            .collect();
        if !wrong.is_empty() {
            findings.push(
                Finding::new(
                    &kinds::CLOCK_DIFFERS,
                    Role::Master,
                    format!("the clocks of {} differ from this host's", named(&wrong)),
                )
                .at("connected minions")
                .because("their answers to status.time were compared with the time of this host")
                .mended_by("timedatectl set-ntp true; timedatectl   # here and on the minions"),
            );
        }
        findings
    }

    fn versions(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let newer: Vec<String> = self
            .versions
            .iter()
            .filter(|(version, _)| compare(version, SALT_VERSION) == Ordering::Greater)
            .flat_map(|(version, ids)| ids.iter().map(move |id| format!("{id} ({version})")))
            .collect();
        if !newer.is_empty() {
            findings.push(
                Finding::new(
                    &kinds::VERSION_NEWER,
                    Role::Master,
                    format!("{} are newer than this master", named(&newer)),
                )
                .at("accepted minions")
                .because(format!("this master works as Salt {SALT_VERSION}; upgrade masters before minions"))
                .mended_by("brine --version; salt '*' test.version"),
            );
        }
        if self.versions.len() > 1 {
            let counts: Vec<String> =
                self.versions.iter().map(|(version, ids)| format!("{version}: {}", ids.len())).collect();
            findings.push(
                Finding::new(&kinds::VERSIONS_MIXED, Role::Master, "minions have different versions")
                    .at("accepted minions")
                    .because(named(&counts))
                    .mended_by("salt-run manage.versions"),
            );
        }
        findings
    }
}

/// Compares versions by their numbers.
fn compare(one: &str, other: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        let parts = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        parts.map_while(|part| part.parse().ok()).take(4).collect()
    };
    numbers(one).cmp(&numbers(other))
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    fn fleet() -> Value {
        map! {
            "time" => 10_000_000_000i64,
            "minions" => list![
                map! {"id" => "a", "state" => "connected", "version" => "3008.3"},
                map! {"id" => "b", "state" => "connected", "version" => "3009.1"},
                map! {"id" => "c", "state" => "never"},
                map! {"id" => "d", "state" => "away", "seen" => 2_800_000_000i64},
                map! {"id" => "e", "state" => "minions_pre"},
                map! {"id" => "f", "state" => "away"},
                map! {"id" => "f", "state" => "minions_denied"},
            ],
        }
        .into()
    }

    #[test]
    fn minions_that_do_not_answer_are_found_with_their_cause() {
        let minions = Minions::read(&fleet());
        let installation = Installation::master(&MasterConfig::default());
        let answers = Answers::from([("a".to_owned(), Some(-300.0))]);
        let findings = minions.silent(&installation, Some(&answers));
        let names: Vec<&str> = findings.iter().map(|one| one.kind.name).collect();
        assert_eq!(names, ["minion-never-connected", "minion-away", "minion-silent", "clock-differs"]);
        assert!(findings[1].why.ends_with(": d (seen 2 h ago)"), "{}", findings[1].why);
        assert!(findings[2].what.starts_with("b "), "{}", findings[2].what);
        assert!(findings[3].what.contains("a (-300 s)"), "{}", findings[3].what);
        let names: Vec<&str> = minions.versions().iter().map(|one| one.kind.name).collect();
        assert_eq!(names, ["version-newer", "versions-mixed"]);
    }

    #[test]
    fn metrics_tell_of_the_store_and_of_those_behind() {
        let installation = Installation::master(&MasterConfig::default());
        let daemon = Daemon::find(&installation);
        let metrics = map! {
            "brine_store_failed" => 1,
            "brine_subscriber_lag_events{subscriber=\"reactor\"}" => 5000,
            "brine_subscriber_lag_events{subscriber=\"job_cache\"}" => 1,
        };
        let findings = of_metrics(&metrics, &installation, &daemon);
        let names: Vec<&str> = findings.iter().map(|one| one.kind.name).collect();
        assert_eq!(names, ["store-failed", "reactor-behind"]);
    }

    #[test]
    fn versions_are_compared_by_numbers() {
        for (one, other, expected) in [
            ("3008.3", "3008.3", Ordering::Equal),
            ("3008.10", "3008.3", Ordering::Greater),
            ("3007", "3008.1", Ordering::Less),
        ] {
            assert_eq!(compare(one, other), expected, "{one} {other}");
        }
    }
}
