use brine_value::map;
use tracing::Level;

use super::*;

#[test]
fn the_most_specific_name_decides_up_to_the_level_of_the_output() {
    let option = map! {
        "salt" => "warning", "salt.modules" => "debug", "salt.modules.file" => "error", "salt.runners.jobs" => "quiet",
        "brine_zmtp.codec" => "all",
    };
    let (levels, wrong) = GranularLevels::read(&option);
    assert_eq!(wrong, Vec::<String>::new());
    let filter = levels.filter(LevelFilter::DEBUG);
    for (target, level, is_logged) in [
        ("brine_master_store::keys", Level::WARN, true),
        ("brine_master_store::keys", Level::INFO, false),
        ("brine_modules_salt::http", Level::DEBUG, true),
        ("brine_modules_files::file::state", Level::ERROR, true),
        ("brine_modules_files::file::state", Level::WARN, false),
        ("brine_master_runners::runner::jobs", Level::ERROR, false),
        // The output itself has no more than debug.
        ("brine_zmtp::codec", Level::DEBUG, true),
        ("brine_zmtp::codec", Level::TRACE, false),
        ("hyper", Level::DEBUG, true),
    ] {
        assert_eq!(filter.would_enable(target, &level), is_logged, "{target} {level}");
    }
    assert!(!levels.filter(LevelFilter::ERROR).would_enable("brine_modules_salt", &Level::WARN));
}

#[test]
fn unknown_loggers_and_levels_are_reported() {
    let option = map! {"tornado" => "info", "salt.nope" => "info", "salt" => "loud", "salt.master" => "info"};
    let (levels, wrong) = GranularLevels::read(&option);
    assert_eq!(levels.0, [("brine_master".to_owned(), LevelFilter::INFO)]);
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    assert!(wrong[0].contains("the logger 'tornado' is unknown") && wrong[2].contains("invalid choice: 'loud'"));
}
