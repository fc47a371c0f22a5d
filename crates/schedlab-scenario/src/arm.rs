//! `[arm]`: how the arms with real kernels run a scenario. Only text and limits are known here; what a machine offers, and
//! whether a kernel can be had, is for whoever runs it.

use std::path::Path;

use schedlab_model::{Nanos, MSEC, SEC};
use serde_json::{json, Value as Json};

use crate::error::Result;
use crate::keys::{ARM, ARM_HOST, ARM_VM};
use crate::value::Table;

const USUAL_NOISE_PCT: f64 = 5.0;
const USUAL_MEMORY_MB: i64 = 1024;
const LONGEST: Nanos = 24 * 3600 * SEC;

/// The table as JSON, with every default filled in; `dir` is what paths are relative to.
pub(crate) fn read(root: &Table, dir: &Path, duration: Nanos) -> Result<Json> {
    let table = root.get("arm").map(|value| value.table("a table such as [arm.vm]")?.only(&ARM)).transpose()?;
    let get = |key: &str| table.as_ref().and_then(|table| table.get(key));
    let drivers = [("program", "program"), ("agent", "agent")];
    let driver = get("driver").map(|value| value.choice(&drivers)).transpose()?;
    let host = get("host").map(|value| value.table("a table")?.only(&ARM_HOST)).transpose()?;
    let vm = get("vm").map(|value| value.table("a table")?.only(&ARM_VM)).transpose()?;
    Ok(json!({ "driver": driver, "host": of_host(host.as_ref(), duration)?, "vm": of_vm(vm.as_ref(), dir, duration)? }))
}

fn of_host(table: Option<&Table>, duration: Nanos) -> Result<Json> {
    let get = |key: &str| table.and_then(|table| table.get(key));
    let order = get("order").map(|value| value.choice(&[("abba", "abba"), ("blocks", "blocks")])).transpose()?;
    let noise = get("noise-limit").map(|value| value.percent(100.0)).transpose()?;
    let limit = get("time-limit").map(|value| value.duration(SEC..=LONGEST)).transpose()?;
    Ok(json!({
        "order": order.unwrap_or("abba"),
        "noise_limit_pct": noise.unwrap_or(USUAL_NOISE_PCT),
        "time_limit_s": seconds(limit.unwrap_or(60 * SEC + 10 * duration)),
    }))
}

fn of_vm(table: Option<&Table>, dir: &Path, duration: Nanos) -> Result<Json> {
    let get = |key: &str| table.and_then(|table| table.get(key));
    let path = get("image").map(|value| value.string("the path of a kernel image")).transpose()?;
    let repeatable = get("repeatable").map(|value| value.boolean()).transpose()?.unwrap_or(false);
    let memory = get("memory").map(|value| value.integer(64..=65536)).transpose()?.unwrap_or(USUAL_MEMORY_MB);
    let cgroup = get("cgroup").map(|value| value.choice(&[("v1", "v1"), ("v2", "v2")])).transpose()?.unwrap_or("v2");
    let append = get("append").map(|value| value.string("words")).transpose()?.unwrap_or("");
    let limit = get("time-limit").map(|value| value.duration(SEC..=LONGEST)).transpose()?;
    Ok(json!({
        "image": path.map(|path| dir.join(path).display().to_string()),
        "repeatable": repeatable,
        "memory_mb": memory,
        "cgroup": cgroup,
        "append": append,
        "time_limit_s": seconds(limit.unwrap_or(300 * SEC + 30 * duration)),
    }))
}

fn seconds(time: Nanos) -> f64 {
    (time / MSEC) as f64 / 1e3
}
