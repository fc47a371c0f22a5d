//! `[[workload.remote]]`: clients on other machines.

use schedlab_model::{Nanos, SEC};
use schedlab_workload::verbs::{Length, TreeRemote, TreeSends};
use schedlab_workload::Dist;

use crate::attribute_values;
use crate::dist::amount;
use crate::error::Result;
use crate::naming::word;
use crate::value::Table;

/// Reads the clients of a table.
pub(crate) fn read(table: &Table, nr_cpus: usize) -> Result<TreeRemote> {
    let queue = word(&table.require("send", "the queue that receives the requests")?)?.to_owned();
    let softirq = table.require("softirq", "the work of the softirq for a request, such as \"2us\"")?;
    Ok(TreeRemote {
        line: table.line(),
        name: table.get("name").map(|name| word(&name)).transpose()?.unwrap_or("remote").to_owned(),
        queue,
        sample: table.get("sample").map(|name| word(&name).map(str::to_owned)).transpose()?,
        sends: sends(table)?,
        irq_cpus: table.get("irq-cpus").map(|cpus| attribute_values::cpus(&cpus, nr_cpus)).transpose()?,
        softirq: amount(&softirq)?,
    })
}

/// One of `rate`, `every` and `clients`.
fn sends(table: &Table) -> Result<TreeSends> {
    let given: Vec<&str> = ["rate", "every", "clients"].into_iter().filter(|key| table.get(key).is_some()).collect();
    if given.len() != 1 {
        let error = table.error("a remote needs one of rate, every and clients");
        return Err(error.hint("rate and every make an open loop, clients with receive a closed one"));
    }
    if given[0] != "clients" {
        if let Some(key) = ["receive", "think", "network"].into_iter().find(|key| table.get(key).is_some()) {
            let error = table.key_error(key, format!("{key} has no effect in an open loop"));
            return Err(error.hint("give clients instead of rate or every, or remove it"));
        }
    }
    let length = |key: &str| table.get(key).map_or(Ok(Length::Fixed(0)), |value| amount(&value));
    Ok(match given[0] {
        "rate" => {
            let rate = table.require("rate", "requests per second")?.number(0.001..=100_000_000.0)?;
            TreeSends::Every(Length::Drawn(Dist::Exponential { mean: (SEC as f64 / rate).round() as Nanos }))
        }
        "every" => TreeSends::Every(amount(&table.require("every", "a length")?)?),
        _ => TreeSends::Closed {
            clients: table.require("clients", "how many clients")?.integer(1..=100_000)? as u32,
            think: length("think")?,
            network: length("network")?,
            replies: word(&table.require("receive", "the queue to which tasks send the replies")?)?.to_owned(),
        },
    })
}
