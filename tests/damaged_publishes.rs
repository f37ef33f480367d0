//! A man in the middle damages publishes: the minion notices within seconds, and runs the jobs that it has missed once.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use crate::support::proxy::Proxy;
use crate::support::syndic::{Syndic, below};
use crate::support::{self, System, stdout, until};

/// The time that one damaged byte may cost, on a busy machine.
const MOST: Duration = Duration::from_secs(20);

/// The bytes that are damaged: a position in what the master writes for a publish, and the changed bits. With ZeroMQ
/// these are flags and length of the topic, the topic, flags and length of the payload, and the payload.
const ZEROMQ: &[(usize, u8)] = &[
    (0, 0x01),
    (0, 0x02),
    (0, 0x04),
    (1, 0x01),
    (1, 0x80),
    (4, 0x10),
    (19, 0x01),
    (19, 0x02),
    (19, 0x04),
    (25, 0x10),
    (26, 0x01),
    (26, 0x80),
    (27, 0x04),
    (60, 0x01),
    (300, 0x80),
];
/// With `transport: tcp`: the mapping of head and body, keys, types and lengths, and the payload.
const TCP: &[(usize, u8)] = &[
    (0, 0x01),
    (1, 0x01),
    (3, 0x20),
    (6, 0x02),
    (7, 0x08),
    (12, 0x01),
    (13, 0x10),
    (14, 0x01),
    (60, 0x01),
    (300, 0x80),
];

async fn damaged_jobs_run(master: &str, minion: &str, damages: &[(usize, u8)]) {
    let mut system = System::start(&format!("{master}publish_catch_up: 300\n")).await;
    let proxy = Proxy::start(system.publish_port).await;
    system.configure_minion("web1", &format!("publish_port: {}\nmessage_timeout: 2\n{master}{minion}", proxy.port));
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    let ran = || std::fs::read_to_string(system.path("ran")).unwrap_or_default();
    let publish = async |word: &str| {
        let command = format!("echo {word} >> {}", system.path("ran").display());
        let output = system.tool_async("salt", &["--async", "web1", "cmd.run", &command]).await;
        assert!(output.status.success(), "{}", support::stderr(&output));
    };
    let mut words = Vec::new();
    let mut slowest = (Duration::ZERO, (0, 0));
    for (at, bits) in damages.iter().copied() {
        proxy.damage(move |bytes| {
            // A publish, not a part of a handshake.
            let is_publish = bytes.len() > 300;
            if is_publish {
                bytes[at] ^= bits;
            }
            is_publish
        });
        let word = format!("{at}-{bits:x}");
        publish(&word).await;
        until("the publish is damaged", || proxy.is_damaged()).await;
        let began = Instant::now();
        while !ran().contains(&format!("{word}\n")) {
            assert!(began.elapsed() < MOST, "{at} {bits:x}: the job is lost\n{}", system.minion_log("web1"));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        slowest = slowest.max((began.elapsed(), (at, bits)));
        words.push(word);
        // A job after it.
        let next = format!("after-{at}-{bits:x}");
        publish(&next).await;
        until("the next job runs", || ran().contains(&format!("{next}\n"))).await;
        words.push(next);
    }
    let mut all: Vec<String> = ran().lines().map(str::to_owned).collect();
    all.sort();
    words.sort();
    assert_eq!(all, words, "each job runs once");
    println!("slowest: {slowest:?}");
    let pinged = stdout(&system.tool_async("salt", &["web1", "test.ping"]).await);
    assert!(pinged.contains("True"), "{pinged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_publish_costs_seconds_with_aes_gcm() {
    damaged_jobs_run("", "ciphers: [aes-256-gcm]\n", ZEROMQ).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_publish_costs_seconds_with_the_cipher_of_salt() {
    // Another topic: its length is that of "broadcast".
    let shifted: Vec<(usize, u8)> =
        ZEROMQ.iter().map(|(at, bits)| (if (19..30).contains(at) { at - 8 } else { *at }, *bits)).collect();
    damaged_jobs_run("", "ciphers: [aes-192-cbc-hmac]\n", &shifted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_publish_costs_seconds_by_tcp() {
    for cipher in ["aes-256-gcm", "aes-192-cbc-hmac"] {
        damaged_jobs_run("transport: tcp\n", &format!("ciphers: [{cipher}]\n"), TCP).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_damages_every_publish_does_not_make_the_minion_loop() {
    let mut system = System::start("publish_catch_up: 300\n").await;
    let proxy = Proxy::start(system.publish_port).await;
    let pauses = "recon_default: 1000\nrecon_max: 4000\n";
    system.configure_minion("web1", "");
    let path = system.path("web1/etc/minion");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.lines().filter(|line| !line.starts_with("recon_")).collect::<Vec<_>>().join("\n");
    std::fs::write(&path, format!("{text}\npublish_port: {}\nmessage_timeout: 2\n{pauses}", proxy.port)).unwrap();
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    let mut auths = system.events("salt/auth").await;
    proxy.damage(|bytes| {
        if bytes.len() > 300 {
            bytes[200] ^= 1;
        }
        false
    });
    let ran = || std::fs::read_to_string(system.path("ran")).unwrap_or_default();
    let began = Instant::now();
    let mut jobs = 0;
    while began.elapsed() < Duration::from_secs(12) {
        let command = format!("echo {jobs} >> {}", system.path("ran").display());
        assert!(system.tool_async("salt", &["--async", "web1", "cmd.run", &command]).await.status.success());
        jobs += 1;
    }
    let mut count = 0;
    while tokio::time::timeout(Duration::from_millis(300), auths.until("salt/auth")).await.is_ok() {
        count += 1;
    }
    assert!((1..40).contains(&count), "{count} authentications for {jobs} jobs");
    proxy.damage(|_| true);
    until("all jobs run", || ran().lines().count() == jobs).await;
    let mut all: Vec<usize> = ran().lines().map(|line| line.parse().unwrap()).collect();
    all.sort_unstable();
    assert_eq!(all, (0..jobs).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_syndic_takes_the_jobs_whose_publishes_were_damaged() {
    let upper = System::start("order_masters: True\nsyndic_wait: 15\npublish_catch_up: 300\n").await;
    // At another address, with the ports of the master.
    let proxy = Proxy::at(Ipv4Addr::new(127, 0, 0, 2), upper.publish_port, upper.publish_port).await;
    let _requests = Proxy::at(Ipv4Addr::new(127, 0, 0, 2), upper.ret_port, upper.ret_port).await;
    let mut lower = below(&[], &format!("syndic_master: '127.0.0.2:{}'\n", upper.ret_port));
    lower.start_master().await;
    lower.start_minion("web1").await;
    let mut started = upper.events("salt/syndic/").await;
    let _syndic = Syndic::start_with(&lower, "s1", "message_timeout: 2\n").await;
    started.until("salt/syndic/s1/start").await;
    for (at, bits) in [(0, 2), (0, 4), (4, 1), (19, 1), (26, 1), (200, 1)] {
        proxy.damage(move |bytes| {
            let is_publish = bytes.len() > 300;
            if is_publish {
                bytes[at] ^= bits;
            }
            is_publish
        });
        let command = format!("echo {at}-{bits} >> {}", lower.path("ran").display());
        assert!(upper.tool_async("salt", &["--async", "web1", "cmd.run", &command]).await.status.success());
        let ran = || std::fs::read_to_string(lower.path("ran")).unwrap_or_default();
        until("the job runs", || ran().matches(&format!("{at}-{bits}\n")).count() == 1).await;
    }
}
