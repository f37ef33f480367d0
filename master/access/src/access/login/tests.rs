use std::net::Ipv4Addr;

use brine_runtime::executors::Executors;
use brine_value::{list, map};

use super::limits::{MAX_CONCURRENT, MAX_QUEUED};
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

const ATTACKER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const USER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

#[tokio::test(start_paused = true)]
async fn guesses_at_a_password_do_not_lock_its_user_out() {
    let (logins, executors) = (logins(), Executors::new(8));
    let guessing = {
        let (logins, executor) = (Arc::clone(&logins), executors.logins.clone());
        async move {
            let end = Instant::now() + Duration::from_secs(60);
            let mut outcomes: HashMap<&str, usize> = HashMap::new();
            while Instant::now() < end {
                let guess = logins.verify(&executor, Some(ATTACKER), credentials("fred", "guess")).await;
                *outcomes.entry(guess.unwrap_err().outcome()).or_default() += 1;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            outcomes
        }
    };
    let working = async {
        for second in 0..60 {
            let right = logins.verify(&executors.logins, Some(USER), credentials("fred", "s3cret")).await;
            assert!(right.is_ok(), "{second}: {right:?}");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let (outcomes, ()) = tokio::join!(guessing, working);
    // Four free ones, and one after each pause of 1, 2, 4, 8 and 16 seconds. (The clock runs on while a backend works.)
    assert!((5..=10).contains(&outcomes["refused"]) && outcomes["throttled"] > 10, "{outcomes:?}");
    // From the same address, too, after the pause.
    while logins.verify(&executors.logins, Some(ATTACKER), credentials("fred", "guess")).await.unwrap_err().outcome()
        != "throttled"
    {}
    let refused = logins.verify(&executors.logins, Some(ATTACKER), credentials("fred", "s3cret")).await;
    assert!(matches!(refused, Err(LoginError::Throttled(_))), "{refused:?}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(logins.verify(&executors.logins, Some(ATTACKER), credentials("fred", "s3cret")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn queued_guesses_are_throttled_too() {
    let (logins, executors) = (logins(), Executors::new(8));
    let guess = |_| {
        let (logins, executor) = (Arc::clone(&logins), executors.logins.clone());
        tokio::spawn(async move { logins.verify(&executor, Some(ATTACKER), credentials("fred", "guess")).await })
    };
    let mut outcomes: HashMap<&str, usize> = HashMap::new();
    for guessed in (0..MAX_CONCURRENT + MAX_QUEUED).map(guess).collect::<Vec<_>>() {
        *outcomes.entry(guessed.await.unwrap().unwrap_err().outcome()).or_default() += 1;
    }
    assert_eq!((outcomes["refused"], outcomes.get("busy")), (4, None), "{outcomes:?}");
    let right = logins.verify(&executors.logins, Some(ATTACKER), credentials("fred", "s3cret")).await;
    assert!(matches!(right, Err(LoginError::Throttled(_))), "{right:?}");
    for (address, user) in [(Some(USER), "fred"), (Some(ATTACKER), "ann"), (None, "fred")] {
        let right = logins.verify(&executors.logins, address, credentials(user, "s3cret")).await;
        assert!(right.is_ok(), "{address:?} {user}: {right:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn guesses_of_one_address_at_many_users_are_throttled() {
    let (logins, executors) = (logins(), Executors::new(8));
    let mut refused = 0;
    for number in 0..100 {
        let guess = logins.verify(&executors.logins, Some(ATTACKER), credentials(&format!("u{number}"), "guess")).await;
        refused += usize::from(guess.unwrap_err().outcome() == "refused");
    }
    assert!((11..=12).contains(&refused), "{refused}");
    assert!(logins.verify(&executors.logins, Some(USER), credentials("u1", "s3cret")).await.is_ok());
}

#[tokio::test]
async fn long_functions_do_not_block_logins() {
    let (logins, executors) = (logins(), Executors::new(2));
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = Arc::new(std::sync::Mutex::new(ended));
    for _ in 0..2 {
        let ended = Arc::clone(&ended);
        drop(executors.jobs.start(move |_| _ = ended.lock().unwrap().recv()).unwrap());
    }
    assert!(logins.verify(&executors.logins, None, credentials("fred", "s3cret")).await.is_ok());
    drop(end);
}

#[test]
fn addresses_are_those_of_connections_and_of_forwarded_requests() {
    for (address, expected) in [
        ("192.0.2.1:4711", Some("192.0.2.1")),
        ("192.0.2.1", Some("192.0.2.1")),
        ("[2001:db8::1]:4711", Some("2001:db8::1")),
        ("2001:db8::1", Some("2001:db8::1")),
        ("127.0.0.1:4711", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
        ("local", None),
    ] {
        let expected = expected.map(|address| address.parse::<IpAddr>().unwrap());
        assert_eq!(remote(&Peer::new(address, std::sync::Weak::new())), expected, "{address}");
    }
}

#[tokio::test]
async fn a_hanging_backend_has_a_short_queue() {
    let (logins, executors) = (logins(), Executors::new(8));
    let limits = logins.limits("sharedsecret").unwrap();
    let mut held = Vec::new();
    for _ in 0..MAX_CONCURRENT {
        held.push(limits.permit(true).await.unwrap());
    }
    let mut waiting: Vec<_> = (0..MAX_QUEUED).map(|_| Box::pin(limits.permit(true))).collect();
    for one in &mut waiting {
        assert!(futures::poll!(one).is_pending());
    }
    let refused = logins.verify(&executors.logins, None, credentials("fred", "s3cret")).await;
    assert!(matches!(refused, Err(LoginError::Busy)), "{refused:?}");
    drop((held, waiting));
    assert!(logins.verify(&executors.logins, None, credentials("fred", "s3cret")).await.is_ok());
}

#[tokio::test]
async fn a_disconnected_client_keeps_its_permit() {
    let (logins, executors) = (logins(), Executors::new(8));
    let limits = logins.limits("sharedsecret").unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let permit = limits.permit(true).await.unwrap();
    let hang = logins.ask(&executors.logins, permit, move |_| {
        _ = ended.recv();
        Ok(())
    });
    assert!(tokio::time::timeout(Duration::from_millis(50), hang).await.is_err());
    assert_eq!(limits.free(), MAX_CONCURRENT - 1);
    drop(end);
    let all = async {
        while limits.free() < MAX_CONCURRENT {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), all).await.is_ok());
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
