//! `master_type: func`: an execution function of this host returns the minion's masters.

use brine_config::MinionConfig;
use brine_context::{Context, Job, masterless};
use brine_function::Args;
use brine_ids::Jid;
use brine_runtime::threads;
use brine_value::Value;

use super::MinionError;

/// Returns the configuration with the masters that the function has returned; unchanged unless `master_type` is `func`.
/// As in Salt the function is called once, before the first connection.
///
/// # Errors
/// A function that does not exist, fails, or returns neither an address nor a list of them.
pub async fn resolved(mut config: MinionConfig) -> Result<MinionConfig, MinionError> {
    if config.master_type != "func" {
        return Ok(config);
    }
    let name = config.master.first().cloned().ok_or(MinionError::NoMaster)?;
    let (alone, fun) = (config.clone(), name.clone());
    // The executors of the minion do not exist yet.
    let called = threads::run("master function", move |_| {
        let minion = masterless::without_pillar(alone, brine_modules::MODULES)?;
        let job = Job::local(&Jid::new(), &fun, &Args::default());
        let context = Context::new(minion, job.into());
        let returned = context.call(&fun, Args::default());
        returned.map_err(|error| MinionError::Invalid(format!("option 'master': calling {fun} failed: {error}")))
    });
    let returned = called
        .await
        .map_err(|error| MinionError::Invalid(format!("option 'master': calling {name} failed: {error}")))??;
    let masters = addresses(&returned).ok_or_else(|| {
        let got = returned.type_name();
        MinionError::Invalid(format!("option 'master': {name} must return an address or a list of them, got {got}"))
    })?;
    tracing::info!(function = name, ?masters, "the master function returned the masters");
    config.set_masters(masters);
    // As in Salt: one address, or a list of masters that are all connected at once.
    "str".clone_into(&mut config.master_type);
    Ok(config)
}

fn addresses(returned: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    match returned {
        Value::List(list) if !list.is_empty() => list.iter().map(text).collect(),
        one => text(one).map(|one| vec![one]),
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn an_address_or_a_list_of_addresses_is_accepted() {
        for (returned, expected) in [
            (Value::from("salt"), Some(vec!["salt"])),
            (list!["a", "b:4507"], Some(vec!["a", "b:4507"])),
            (Value::from(""), None),
            (Value::List(Vec::new()), None),
            (list!["a", 1], None),
            (Value::Nil, None),
        ] {
            let expected = expected.map(|all| all.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(addresses(&returned), expected, "{returned:?}");
        }
    }
}
