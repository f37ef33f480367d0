use super::*;
use crate::ui::Colours;

fn pages() -> Pages {
    Pages::load().unwrap()
}

#[test]
fn names_are_looked_up_in_order() {
    let pages = pages();
    for (name, place, part) in [
        // Functions.
        ("file.managed", "reference/states/file#filemanaged", "makedirs"),
        ("cmd.run", "reference/modules/cmd#cmdrun", "cmd.run (state function)"),
        ("state cmd.run", "reference/states/cmd#cmdrun", "creates"),
        ("execution cmd.run", "reference/modules/cmd#cmdrun", "cmd.run (execution function)"),
        ("jobs.active", "reference/runners/jobs#jobsactive", "runner function"),
        ("wheel key.accept", "reference/wheel/key#keyaccept", "wheel function"),
        // Rows of tables.
        ("worker_threads", "reference/master", "worker_threads"),
        ("acceptance_wait_time", "reference/minion", "pending"),
        ("brine_accept_failed_total", "reference/metrics", "could not be accepted"),
        ("salt/job/<jid>/new", "reference/events", "a job is about to be published"),
        ("salt/job/20260101000000000000/ret/web1", "reference/events", "a minion returns a job"),
        ("B103", "reference/check", "twice in a mapping"),
        ("option log_level", "reference/master", "Options of the minion"),
        // Pages.
        ("how-to/no-answer", "how-to/no-answer", "answer"),
        ("no-answer", "how-to/no-answer", "answer"),
        ("docs/troubleshooting.md", "troubleshooting", "Find your symptom"),
        ("troubleshooting#pillar-is-empty", "troubleshooting#pillar-is-empty", "saltutil.refresh_pillar"),
        ("Delivery: what is lost, repeated, reordered", "explanation/delivery", ""),
        // Modules.
        ("file", "reference/modules/file", "file.managed"),
        ("module reactor", "reference/runners/reactor", "reactor.explain"),
        // Tools.
        ("salt-key", "reference/command-line#brine-key", "Usage: salt-key"),
        ("tool brine", "reference/command-line#brine", "Tools:"),
        // Headings.
        ("Pillar is empty", "troubleshooting#pillar-is-empty", "top file of its own"),
        ("what-needs-a-restart", "troubleshooting#what-needs-a-restart", "restart"),
        // Phrases.
        ("has the right to ask nobody anything", "", ""),
        ("one durable bus; everything that acts", "explanation/overview#how-it-fits-together", "subscriber"),
    ] {
        match look_up(&pages, name) {
            Ok(answer) => {
                let anchor = if answer.anchor.is_empty() { String::new() } else { format!("#{}", answer.anchor) };
                assert_eq!(format!("{}{anchor}", answer.page), place, "{name}");
                assert!(answer.text.contains(part), "{name}: {}", answer.text);
            }
            Err(near) => assert_eq!((place, near.as_slice()), ("", &[] as &[String]), "{name}"),
        }
    }
}

#[test]
fn other_meanings_and_similar_names_are_named() {
    let pages = pages();
    let reactor = look_up(&pages, "reactor").unwrap();
    assert_eq!(
        (reactor.page.as_str(), reactor.also),
        ("reference/master", vec!["page reactor".into(), "module reactor".into()])
    );
    let near = look_up(&pages, "file.managd").unwrap_err();
    assert_eq!(nothing("file.managd", &near), "nothing is found for 'file.managd': did you mean 'file.managed'?");
    assert_eq!(nothing("x", &[]), "nothing is found for 'x': `brine docs` lists the pages");
}

#[test]
fn the_list_has_every_page_and_every_page_can_be_shown() {
    let pages = pages();
    let list = list(&pages);
    assert!(pages.list.len() > 90, "{}", pages.list.len());
    for page in &pages.list {
        assert!(list.text.contains(&format!("`{}`", page.name)), "{}", page.name);
        let answer = look_up(&pages, &format!("page {}", page.name)).unwrap();
        let drawing = |image: &str| pages.drawing(&answer.page, image).map(str::to_owned);
        let text = show(&pages, &answer, Style { colours: Colours::OFF, width: 100, drawing: &drawing });
        assert!(!text.contains(".md)"), "{}: {text}", page.name);
    }
    let drawing = |image: &str| pages.drawing("explanation/overview", image).map(str::to_owned);
    let overview = look_up(&pages, "explanation/overview").unwrap();
    let text = show(&pages, &overview, Style { colours: Colours::OFF, width: 100, drawing: &drawing });
    assert!(text.contains("| minion |") && text.contains("`brine docs explanation/delivery`"), "{text}");
}

#[test]
fn the_address_of_a_page_is_on_the_site() {
    let answer = look_up(&pages(), "file.managed").unwrap();
    for (site, is_installed, expected) in [
        (
            Some("https://docs.example.com/"),
            true,
            Some("https://docs.example.com/reference/states/file.html#filemanaged"),
        ),
        (Some("/srv/site"), false, Some("file:///srv/site/reference/states/file.html#filemanaged")),
        (None, true, Some("file:///usr/share/doc/brine/html/reference/states/file.html#filemanaged")),
        (Some(""), false, None),
    ] {
        assert_eq!(address(&answer, site, is_installed).ok().as_deref(), expected, "{site:?}");
    }
}

#[test]
fn packed_files_are_unpacked() {
    let files = nav::files(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut pack = Vec::new();
    nav::pack(&files, &mut pack).unwrap();
    let pack = String::from_utf8(pack).unwrap();
    assert_eq!(nav::unpack(&pack), Some(files));
    assert_eq!(nav::unpack(&pack[..pack.len() - 1]), None);
}
