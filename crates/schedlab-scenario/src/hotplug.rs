//! `hotplug`: CPUs that go offline and come back while the scenario runs.

use schedlab_model::{CpuMask, Nanos, SEC};
use schedlab_spec::CpuChange;
use serde_json::{json, Value as Json};

use crate::cgroup::cpu_list;
use crate::error::Result;
use crate::keys::HOTPLUG;
use crate::units;
use crate::value::Value;

const FORM: &str = "tables such as { at = \"500ms\", offline = \"2-3\" }";

/// Reads the events of a machine with this many CPUs. CPUs go offline only while they are online, come back only after
/// they went, and one stays.
pub(crate) fn read<'a>(value: &Value<'a>, nr_cpus: usize) -> Result<Vec<(CpuChange, Value<'a>)>> {
    let machine = CpuMask::first(nr_cpus);
    let mut online = machine;
    let mut events: Vec<(CpuChange, Value)> = Vec::new();
    for entry in value.array(FORM)? {
        let table = entry.table(FORM)?.only(&HOTPLUG)?;
        let at = table.require("at", "a duration such as \"500ms\"")?;
        let time: Nanos = at.duration(1..=1000 * SEC)?;
        if events.last().is_some_and(|(before, _)| before.at > time) {
            return Err(at.error("this event is earlier than the one before it"));
        }
        let (place, comes) = match (table.get("offline"), table.get("online")) {
            (Some(place), None) => (place, false),
            (None, Some(place)) => (place, true),
            _ => return Err(at.error("an event takes CPUs offline or brings them online").expected(FORM)),
        };
        let cpus = cpu_list(&place)?;
        let wrong = cpus.without(&machine);
        if !wrong.is_empty() {
            let message = format!("\"{}\": the machine has CPUs 0 to {}", wrong.to_list(), nr_cpus - 1);
            return Err(place.error(message));
        }
        let wrong = if comes { cpus.and(&online) } else { cpus.without(&online) };
        if !wrong.is_empty() {
            let state = if comes { "online" } else { "offline" };
            return Err(place.error(format!("already {state}: {}", wrong.to_list())));
        }
        online = if comes { online.iter().chain(cpus.iter()).collect() } else { online.without(&cpus) };
        if online.is_empty() {
            return Err(place
                .error("no CPU would remain online")
                .hint("the kernel refuses to take the last CPU offline (EBUSY)"));
        }
        events.push((CpuChange { at: time, cpus, online: comes }, place));
    }
    Ok(events)
}

/// The events as JSON, for the results.
pub(crate) fn show(events: &[(CpuChange, Value)]) -> Json {
    let event = |(change, _): &(CpuChange, Value)| {
        let key = if change.online { "online" } else { "offline" };
        json!({ "at": units::show_duration(change.at), key: change.cpus.to_list() })
    };
    events.iter().map(event).collect()
}
