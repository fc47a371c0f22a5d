//! `[arm]`: settings for the arms with real kernels. Their form is checked here; whether this machine can run the
//! scenario and whether a kernel image exists is checked by the arm.

use std::path::Path;

use schedlab_model::{Nanos, MSEC, SEC};
use serde_json::{json, Map, Value as Json};

use crate::error::Result;
use crate::keys::{ARM, ARM_HOST, ARM_VM};
use crate::value::{Table, Value};

const USUAL_NOISE_PCT: f64 = 5.0;
const USUAL_MEMORY_MB: i64 = 1024;
const LONGEST: Nanos = 24 * 3600 * SEC;

/// Reads the table and returns it as JSON with all defaults. Paths are relative to `dir`; `variants` are the valid keys
/// of a table of images.
pub(crate) fn read(root: &Table, dir: &Path, duration: Nanos, variants: &[&str]) -> Result<Json> {
    let table = root.get("arm").map(|value| value.table("a table such as [arm.vm]")?.only(&ARM)).transpose()?;
    let get = |key: &str| table.as_ref().and_then(|table| table.get(key));
    let drivers = [("program", "program"), ("agent", "agent")];
    let driver = get("driver").map(|value| value.choice(&drivers)).transpose()?;
    let host = get("host").map(|value| value.table("a table")?.only(&ARM_HOST)).transpose()?;
    let vm = get("vm").map(|value| value.table("a table")?.only(&ARM_VM)).transpose()?;
    Ok(
        json!({ "driver": driver, "host": of_host(host.as_ref(), duration)?, "vm": of_vm(vm.as_ref(), dir, duration, variants)? }),
    )
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

fn of_vm(table: Option<&Table>, dir: &Path, duration: Nanos, variants: &[&str]) -> Result<Json> {
    let get = |key: &str| table.and_then(|table| table.get(key));
    let images = get("image").map(|value| images(&value, dir, variants)).transpose()?.unwrap_or_default();
    let repeatable = get("repeatable").map(|value| value.boolean()).transpose()?.unwrap_or(false);
    let memory = get("memory").map(|value| value.integer(64..=65536)).transpose()?.unwrap_or(USUAL_MEMORY_MB);
    let cgroup = get("cgroup").map(|value| value.choice(&[("v1", "v1"), ("v2", "v2")])).transpose()?.unwrap_or("v2");
    let append = get("append").map(|value| value.string("words")).transpose()?.unwrap_or("");
    let limit = get("time-limit").map(|value| value.duration(SEC..=LONGEST)).transpose()?;
    Ok(json!({
        "images": images,
        "repeatable": repeatable,
        "memory_mb": memory,
        "cgroup": cgroup,
        "append": append,
        "time_limit_s": seconds(limit.unwrap_or(300 * SEC + 30 * duration)),
    }))
}

/// The kernel image of each variant: one path for all variants, or a table by variant.
fn images(value: &Value, dir: &Path, variants: &[&str]) -> Result<Map<String, Json>> {
    let path = |value: &Value| -> Result<Json> {
        let path = value.string("the path of a kernel image, or a table of paths by variant")?;
        Ok(Json::from(value.dir(dir).join(path).display().to_string()))
    };
    let Some(table) = value.as_table() else {
        let path = path(value)?;
        return Ok(variants.iter().map(|name| ((*name).to_owned(), path.clone())).collect());
    };
    let table = table.only_these(variants, "the table of images by variant")?;
    table.entries().iter().map(|(name, value)| Ok(((*name).to_owned(), path(value)?))).collect()
}

fn seconds(time: Nanos) -> f64 {
    (time / MSEC) as f64 / 1e3
}
