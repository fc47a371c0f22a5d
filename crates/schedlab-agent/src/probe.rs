//! What this machine supports. Features are tried out rather than looked up wherever that has no lasting effect.

use std::fs;
use std::path::Path;

use schedlab_model::MSEC;
use schedlab_workload::Policy;
use serde_json::{json, Value as Json};

use crate::cgroups::{self, Version};
use crate::sys::{self, Forked};
use crate::{attributes, program, tracing};

/// All findings as JSON.
#[must_use]
pub fn probe() -> Json {
    let uname = rustix::system::uname();
    let text = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let allowed = crate::run::allowed_cpus().unwrap_or_default();
    let programs: serde_json::Map<String, Json> = program::installed()
        .into_iter()
        .map(|(name, path)| (name.to_owned(), path.map(|path| path.display().to_string()).into()))
        .collect();
    json!({
        "release": uname.release().to_string_lossy(),
        "machine": uname.machine().to_string_lossy(),
        "root": rustix::process::geteuid().is_root(),
        "cpus": allowed,
        "online": text("/sys/devices/system/cpu/online"),
        "clock": text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "clock_read_ns": clock_read(),
        "tracefs": answer(tracing::permitted()),
        "debugfs_sched": Path::new("/sys/kernel/debug/sched/features").exists(),
        "perf_event_paranoid": text("/proc/sys/kernel/perf_event_paranoid"),
        "defaults": works(|| crate::inherited::reset().is_ok()),
        "affinity": works(|| attributes::affinity(&first(&allowed)).is_ok()),
        "nice_negative": works(|| attributes::nice(-20).is_ok()),
        "fifo": works(|| attributes::policy(Policy::Fifo(1)).is_ok()),
        "slice": works(|| attributes::slice(5 * MSEC).is_ok()),
        "timer_slack": works(|| attributes::timer_slack(1).is_ok()),
        "cgroup": cgroup(),
        "autogroup": text("/proc/sys/kernel/sched_autogroup_enabled"),
        "programs": programs,
    })
}

/// Tries something in a child process, so that it has no effect on this one.
fn works(what: impl FnOnce() -> bool) -> bool {
    match sys::fork() {
        Ok(Forked::Child) => sys::exit_now(i32::from(!what())),
        Ok(Forked::Parent(_)) => {
            matches!(sys::wait_any(true, true), Ok(Some((_, status))) if sys::ended_badly(status).is_none())
        }
        Err(_) => false,
    }
}

fn first(allowed: &[u32]) -> rustix::thread::CpuSet {
    let mut set = rustix::thread::CpuSet::new();
    allowed.iter().take(1).for_each(|cpu| set.set(*cpu as usize));
    set
}

fn answer(tried: Result<(), String>) -> Json {
    match tried {
        Ok(()) => json!({ "ok": true }),
        Err(why) => json!({ "ok": false, "why": why }),
    }
}

fn clock_read() -> u64 {
    const READS: u64 = 10_000;
    let begin = crate::clock::now();
    (0..READS).for_each(|_| {
        std::hint::black_box(crate::clock::now());
    });
    (crate::clock::now() - begin) / READS
}

/// The hierarchy with the cpu controller, and whether groups can be created there.
fn cgroup() -> Json {
    let Some((version, path)) = cgroups::hierarchy() else { return Json::Null };
    let group = path.join(format!("schedlab-probe-{}", std::process::id()));
    let writable = fs::create_dir(&group).is_ok() && fs::remove_dir(&group).is_ok();
    let version = match version {
        Version::V1 => "v1",
        Version::V2 => "v2",
    };
    json!({ "version": version, "path": path, "writable": writable })
}
