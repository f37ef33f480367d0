use brine_runtime::executors::Executors;
use brine_value::{list, map};

use super::*;

fn logins() -> Arc<Logins> {
    let options = map! {
        "external_auth" => map! {"sharedsecret" => map! {"fred" => list!["test.*"]}},
        "sharedsecret" => "s3cret",
    };
    Arc::new(Logins::new(Arc::new(ExternalAuth::new(&options))))
}

fn credentials(user: &str, password: &str) -> Credentials {
    Credentials { eauth: "sharedsecret".into(), username: user.into(), password: password.into() }
}

#[tokio::test]
async fn queued_guesses_are_throttled_too() {
    let (logins, executors) = (logins(), Executors::new(8));
    let guess = |_| {
        let (logins, jobs) = (Arc::clone(&logins), executors.jobs.clone());
        tokio::spawn(async move { logins.verify(&jobs, None, credentials("fred", "guess")).await })
    };
    let mut outcomes: HashMap<&str, usize> = HashMap::new();
    for guessed in (0..MAX_CONCURRENT + MAX_QUEUED).map(guess).collect::<Vec<_>>() {
        *outcomes.entry(guessed.await.unwrap().unwrap_err().outcome()).or_default() += 1;
    }
    // Three failures are not throttled, and some logins were verified concurrently.
    assert!(outcomes["refused"] <= 4 + MAX_CONCURRENT, "{outcomes:?}");
    let right = logins.verify(&executors.jobs, None, credentials("fred", "s3cret")).await;
    assert!(matches!(right, Err(LoginError::Throttled(_))), "{right:?}");
    assert!(logins.verify(&executors.jobs, None, credentials("ann", "s3cret")).await.is_ok());
}

#[tokio::test]
async fn a_hanging_backend_has_a_short_queue() {
    let (logins, executors) = (logins(), Executors::new(8));
    let limits = logins.limits("sharedsecret").unwrap();
    let mut held = Vec::new();
    for _ in 0..MAX_CONCURRENT {
        held.push(limits.permit().await.unwrap());
    }
    let rooms: Vec<_> = (0..MAX_QUEUED).map(|_| Arc::clone(&limits.queue).try_acquire_owned().unwrap()).collect();
    let refused = logins.verify(&executors.jobs, None, credentials("fred", "s3cret")).await;
    assert!(matches!(refused, Err(LoginError::Busy)), "{refused:?}");
    drop((held, rooms));
    assert!(logins.verify(&executors.jobs, None, credentials("fred", "s3cret")).await.is_ok());
}

#[tokio::test]
async fn a_disconnected_client_keeps_its_permit() {
    let (logins, executors) = (logins(), Executors::new(8));
    let limits = logins.limits("sharedsecret").unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let permit = limits.permit().await.unwrap();
    let hang = logins.ask(&executors.jobs, permit, move |_| {
        _ = ended.recv();
        Ok(())
    });
    assert!(tokio::time::timeout(Duration::from_millis(50), hang).await.is_err());
    assert_eq!(limits.running.available_permits(), MAX_CONCURRENT - 1);
    drop(end);
    let all = tokio::time::timeout(Duration::from_secs(10), limits.running.acquire_many(MAX_CONCURRENT as u32)).await;
    assert!(all.is_ok());
}

#[test]
fn failures_take_as_long_as_the_slowest_of_their_backend() {
    let logins = logins();
    let limits = logins.limits("sharedsecret").unwrap();
    for (slowest, least) in [(0, 1_000), (200, 1_000), (3_000, 3_000)] {
        limits.slowest.store(slowest, Ordering::Relaxed);
        let time = logins.failure_time("sharedsecret").as_millis();
        assert!((least..=least * 3 / 2).contains(&time), "{slowest}: {time}");
    }
    assert!(logins.failure_time("unknown") < Duration::from_millis(1_501));
}
