//! The rates at which database servers store events and returns. Ignored: they depend on the machine.
//!
//!     cargo test --workspace --features databases --test servers rates -- --ignored --nocapture

use std::time::Instant;

use crate::support::{DatabaseServer, Kind, RedisServer};
use brine_event::Event;
use brine_job::Return;
use brine_returners::{Options, open};
use brine_value::{Map, list, map};

const COUNT: usize = 10_000;
/// The number of events in one batch, as on a busy bus.
const BATCH: usize = 1000;

fn event(number: usize) -> Event {
    let data = map! {
        "jid" => format!("20261120{number:012}"), "id" => "minion0001.example.org", "fun" => "state.apply", "fun_args" => list!["web"],
        "return" => map! {"file_|-motd_|-/etc/motd_|-managed" => map! {"result" => true, "comment" => "x".repeat(300)}},
        "retcode" => 0, "success" => true,
    };
    Event::from_map(&format!("salt/job/20261120{number:012}/ret/minion0001.example.org"), &data).unwrap()
}

fn measure(name: &str, opts: &Map) {
    let returner = open(name, &Options::new(opts, None)).unwrap();
    // Fails for servers without tables.
    _ = returner.setup();
    let events: Vec<Event> = (0..COUNT).map(event).collect();
    let returns: Vec<Return> = events.iter().map(|event| Return::from_map(event.data()).unwrap()).collect();
    let start = Instant::now();
    events.chunks(BATCH).for_each(|batch| returner.event_return(batch).unwrap());
    let of_events = COUNT as f64 / start.elapsed().as_secs_f64();
    let start = Instant::now();
    returns.chunks(BATCH).for_each(|batch| returner.save_returns(batch).unwrap());
    let of_returns = COUNT as f64 / start.elapsed().as_secs_f64();
    println!("{name}: {of_events:.0} events/s, {of_returns:.0} returns/s");
    assert!(cfg!(debug_assertions) || of_events > 5000.0 && of_returns > 5000.0, "{name}");
}

#[test]
#[ignore = "depends on the machine"]
fn ten_thousand_events_and_returns_take_at_most_two_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let server = RedisServer::start(directory.path());
    measure("redis", &server.opts());
    for (kind, names) in
        [(Kind::MariaDb, &["mysql"][..]), (Kind::Postgres, &["postgres", "pgjsonb", "postgres_local_cache"])]
    {
        let directory = tempfile::tempdir().unwrap();
        let server = DatabaseServer::start(kind, directory.path());
        for name in names {
            let database = format!("salt_{name}");
            server.create(&database);
            measure(name, &server.opts(name, &database));
        }
    }
}
