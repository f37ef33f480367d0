//! Tests of publishing and following jobs, and of their returns.

use brine_bus::store::Table;
use brine_job::orchestration::OrchestratedJob;
use brine_master_access::admission::ciphers;
use brine_master_access::admission::identity::Identity;
use brine_master_access::admission::sessions::Sessions;
use brine_master_store::job_events::MORE;
use brine_master_testing::Fixture;
use brine_zmtp::Publisher;

use super::batches::{BatchRequest, State};
use super::*;

fn jobs_of(fixture: &Fixture) -> Arc<Jobs> {
    let stream = PublishStream::new(
        Arc::clone(&fixture.config),
        ciphers(&fixture.config.ciphers).unwrap().into(),
        (Arc::new(Identity::load_or_generate(&fixture.config).unwrap()), Arc::new(Sessions::new())),
        Publisher::new(),
        fixture.executors.crypto.clone(),
        fixture.events.clone(),
    );
    let facts = Facts::new(Arc::clone(&fixture.config), fixture.storage.clone(), Publisher::new());
    Arc::new(Jobs::new(
        Arc::clone(&fixture.config),
        fixture.events.clone(),
        Arc::new(facts),
        Arc::new(stream),
        Batches::open(&fixture.store, fixture.sealing.clone()).unwrap(),
        fixture.storage.clone(),
        (Mask::default(), Arc::clone(&fixture.sealed_arguments)),
        Background::default(),
    ))
}

/// Stores a batch, and returns the rows in the store and the arguments of the batches that are read from it.
async fn stored_batch(fixture: &Fixture, batch: BatchRequest) -> (Vec<Vec<u8>>, Vec<Vec<Value>>) {
    let open = || Batches::open(&fixture.store, fixture.sealing.clone()).unwrap();
    let state = State::new(&Jid::new(), batch, vec!["web1".to_owned()], 1);
    open().store(&state).durable().await.unwrap();
    let rows = fixture.store.scan(Table("batches"), b"", usize::MAX).unwrap();
    let read = open().active().into_iter().map(|state| state.request.arg).collect();
    (rows.into_iter().map(|(_, value)| value).collect(), read)
}

fn ping(tgt: &str) -> PublishRequest {
    PublishRequest::new(tgt, "test.ping", "root")
}

#[tokio::test]
async fn the_event_of_a_job_precedes_its_publish() {
    let fixture = Fixture::new(&["web1", "db1"], |_| {});
    let (jobs, mut events) = (jobs_of(&fixture), fixture.subscribe());
    let published = jobs.publish(ping("web*")).await.unwrap();
    let jid = published.jid.unwrap();
    assert_eq!((published.minions, published.missing), (vec!["web1".to_owned()], Vec::new()));
    for word in ["new", "publish"] {
        let event = events.recv().await.unwrap();
        assert_eq!(event.tag(), format!("salt/job/{jid}/{word}"));
        assert_eq!(event.data().get("fun"), Some(&"test.ping".into()));
    }
    let last = fixture.events.bus.last_seq();
    assert_eq!(jobs.publish(ping("nobody")).await.unwrap().jid, None);
    assert_eq!(fixture.events.bus.last_seq(), last, "a job for nobody has no events");
    let request = PublishRequest { fun: 5.into(), ..ping("*") };
    assert!(matches!(jobs.publish(request).await, Err(PublishError::BadFunction)));
}

#[tokio::test]
async fn a_minion_that_does_not_return_in_time_is_missing() {
    let fixture = Fixture::new(&["web1", "web2"], |_| {});
    let answering = answer(&fixture, |id, _| (id == "web1").then_some(0));
    let answers = jobs_of(&fixture).publish_and_wait(ping("*"), Duration::from_millis(300)).await.unwrap();
    assert_eq!(answers.missing, ["web2"]);
    assert_eq!(answers.returned.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["web1"]);
    answering.abort();
}

#[tokio::test]
async fn failhard_stops_the_batch_of_an_orchestration() {
    let fixture = Fixture::new(&["web1", "web2", "web3"], |_| {});
    let answering = answer(&fixture, |id, fun| Some(i64::from(fun != "test.ping" && id == "web2")));
    let request = PublishRequest { fun: "cmd.run".into(), ..ping("web*") };
    let ask = OrchestratedJob {
        batch: Some("1".to_owned()),
        failhard: true,
        timeout: Some(Duration::from_secs(1)),
        ..OrchestratedJob::new(request)
    };
    let answers = jobs_of(&fixture).run_to_end(ask).await.unwrap();
    let codes: Vec<_> =
        answers.iter().map(|one| (one.id.as_str(), brine_job::retcode(one.returned.as_ref().unwrap()))).collect();
    assert_eq!(codes, [("web1", 0), ("web2", 1)]);
    assert_eq!(answers[0].jid, answers[1].jid, "all parts have one job id");
    answering.abort();
}

/// Publishes returns of minions, with retcodes from `retcode`.
fn answer(
    fixture: &Fixture,
    retcode: impl Fn(&str, &str) -> Option<i64> + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let (mut events, bus) = (fixture.subscribe(), fixture.events.bus.clone());
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            let Some(tag) = event.tag().strip_suffix("/new") else { continue };
            let data = event.data();
            let fun = data.get("fun").map(ToString::to_string).unwrap_or_default();
            for id in data.get("minions").and_then(Value::as_list).unwrap_or_default() {
                let id = id.to_string();
                let Some(code) = retcode(&id, &fun) else { continue };
                let body = map! {"id" => &id, "return" => true, "retcode" => code};
                bus.fire(&format!("{tag}/ret/{id}"), &body).await.unwrap();
            }
        }
    })
}

#[test]
fn a_load_has_the_options_of_minions_alone() {
    let request = PublishRequest { kwargs: map! {"metadata" => "x", "_cause" => 5}, ..ping("*") };
    let jid = Jid::new();
    let load = load(&request, &jid);
    assert_eq!((load.get("metadata"), load.get("_cause")), (Some(&"x".into()), None));
}

const MARKER: &str = "MARKER-4711";

fn is_in(bytes: &[u8]) -> bool {
    bytes.windows(MARKER.len()).any(|part| part == MARKER.as_bytes())
}

fn with_secrets() -> PublishRequest {
    let keywords = map! {"__kwarg__" => true, "password" => MARKER, "pillar" => map! {"a" => MARKER}, "name" => "web"};
    PublishRequest {
        arg: vec![map! {"api_key" => MARKER}.into(), format!("token={MARKER}").into(), keywords.into()],
        kwargs: map! {"ret_kwargs" => map! {"host" => MARKER}, "metadata" => map! {"secret" => MARKER}},
        ..PublishRequest::new("web*", "test.arg", "root")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_job_mask_its_secrets_and_refer_to_them() {
    let fixture = Fixture::new(&["web1"], |_| {});
    let (jobs, mut events) = (jobs_of(&fixture), fixture.subscribe());
    jobs.publish(with_secrets()).await.unwrap();
    let mut references = Vec::new();
    for word in ["new", "publish"] {
        let event = events.recv().await.unwrap();
        assert!(event.tag().ends_with(word) && !is_in(event.frame()), "{:?}", event.data());
        let data = event.data();
        assert!(data["arg"].to_string().contains("'name': 'web'"), "{data:?}");
        references.push(data.get(MASKED).or_else(|| data.get(MORE)?.get(MASKED)).unwrap().to_string());
    }
    assert_eq!(references[0], references[1]);
    let reference = references.remove(0);
    let fields = fixture.storage.run(move |storage| {
        // The row is written in the background.
        storage.sealed_arguments.put(&"0".repeat(32), b"").unwrap().durable_blocking().unwrap();
        storage.sealed_arguments.fields(&reference)
    });
    let fields = fields.await.unwrap().unwrap();
    assert_eq!(fields["arg"], with_secrets().arg.into());
    assert_eq!(fields["ret_kwargs"], map! {"host" => MARKER}.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_secrets_is_recorded_as_it_is() {
    let fixture = Fixture::new(&["web1"], |_| {});
    let (jobs, mut events) = (jobs_of(&fixture), fixture.subscribe());
    let request = PublishRequest { arg: vec![map! {"name" => MARKER}.into()], ..ping("web*") };
    jobs.publish(request).await.unwrap();
    for _ in 0..2 {
        let event = events.recv().await.unwrap();
        assert!(is_in(event.frame()) && !event.data().contains_key(MASKED));
    }
}

#[tokio::test]
async fn arguments_copied_from_a_record_are_not_published() {
    let fixture = Fixture::new(&["web1"], |_| {});
    let request = PublishRequest { arg: vec![map! {"password" => MASK}.into()], ..ping("web*") };
    assert!(matches!(jobs_of(&fixture).publish(request).await, Err(PublishError::Masked)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_batch_is_sealed_and_read_again() {
    let fixture = Fixture::new(&["web1"], |_| {});
    let batch = BatchRequest { request: with_secrets(), size: "1".to_owned(), failhard: false, wait: 0.0, timeout: 1 };
    let (rows, states) = stored_batch(&fixture, batch).await;
    assert!(!rows.iter().any(|row| is_in(row)), "the store has no argument in clear");
    assert_eq!(states, [with_secrets().arg]);
}
