use std::convert::Infallible;
use std::time::Duration;

use brine_value::{Map, list, map};

use super::*;

const TIMES: Times =
    Times { timeout: Duration::from_secs(3600), gather: Duration::from_secs(3600), find_job: "saltutil.find_job" };

/// A master whose minions return the value of their entry. `None` as an event interrupts the job.
struct Master {
    returns: Map,
    events: VecDeque<Option<Event>>,
    published: Vec<PublishRequest>,
}

impl Master {
    fn new(returns: Map) -> Self {
        Master { returns, events: VecDeque::new(), published: Vec::new() }
    }
}

impl Link for Master {
    type Error = Infallible;

    async fn publish(&mut self, request: PublishRequest) -> Result<Published, Infallible> {
        let jid = request.jid.clone().unwrap_or_default();
        let minions: Vec<String> = self.returns.keys().map(ToString::to_string).collect();
        for (id, value) in &self.returns {
            let load =
                map! {"jid" => &jid, "id" => id.clone(), "fun" => "f", "return" => value.clone(), "retcode" => 0};
            self.events.push_back(Event::from_map(&format!("salt/job/{jid}/ret/{id}"), &load).ok());
        }
        self.published.push(request);
        let jid = Some(jid).filter(|_| !minions.is_empty());
        Ok(Published { jid, minions, missing: vec!["gone".to_owned()], disconnected: Vec::new(), syndics: None })
    }

    async fn event(&mut self) -> Result<Option<Event>, Infallible> {
        Ok(self.events.pop_front().flatten())
    }
}

fn request(fun: Value) -> PublishRequest {
    PublishRequest {
        tgt: "*".into(),
        tgt_type: "glob".into(),
        fun,
        arg: vec![1.into()],
        ret: "redis".into(),
        jid: None,
        key: None,
        proof: None,
        user: "me".into(),
        kwargs: Map::new(),
    }
}

#[tokio::test]
async fn minions_that_answer_a_ping_are_present() {
    let mut master = Master::new(map! {"b" => true, "a" => true});
    let responses = ping_target(&mut master, &request("f".into()), "test.ping", TIMES).await.unwrap();
    assert_eq!((responses.minions, responses.down), (vec!["a".to_owned(), "b".to_owned()], vec!["gone".to_owned()]));
    assert!(responses.matched && !responses.interrupted);
    let asked = &master.published[0];
    assert_eq!((&asked.fun, asked.arg.len(), asked.ret.as_str()), (&"test.ping".into(), 0, ""));
    let responses = ping_target(&mut Master::new(map! {}), &request("f".into()), "test.ping", TIMES).await.unwrap();
    assert!(!responses.matched && responses.minions.is_empty());
}

#[tokio::test]
async fn an_interrupt_ends_the_ping() {
    let mut master = Master::new(map! {"a" => true});
    master.events.push_back(None);
    let responses = ping_target(&mut master, &request("f".into()), "test.ping", TIMES).await.unwrap();
    assert!(responses.interrupted && responses.minions.is_empty());
}

#[tokio::test]
async fn a_subset_has_minions_with_all_functions() {
    let returns = map! {"a" => list!["f", "g"], "b" => list!["f"], "c" => "error", "d" => list!["g", "f"]};
    for (fun, able_ones) in [(Value::from("f"), vec!["a", "b", "d"]), (list!["f", "g"], vec!["a", "d"])] {
        let request = request(fun);
        let minions = minions_with_functions(&mut Master::new(returns.clone()), &request, "sys.list_functions", TIMES)
            .await
            .unwrap()
            .minions;
        assert_eq!(minions, able_ones);
        let job = subset(&request, minions, 1);
        assert_eq!((job.tgt_type.as_str(), job.tgt.as_list().unwrap().len()), ("list", 1));
        assert_eq!((job.arg, job.ret), (request.arg, request.ret));
    }
}
