//! Why a cost of a machine file was not measured.

use std::collections::BTreeMap;

use super::{traced, Entry};

/// What kept this calibration from measuring everything.
pub struct Unmeasured {
    /// There is one CPU only.
    pub one_cpu: bool,
    /// Why there are no tracepoints; None: they were recorded.
    pub off_reason: Option<String>,
    /// Whether tracepoints were asked for.
    pub asked: bool,
}

const INTERNAL: &str = "internal to the kernel; neither a program nor a tracepoint can measure it";
const HOST: &str = "it concerns the host of a guest, where the agent does not run";
const TWO_CPUS: &str = "the measurement needs two CPUs and there is only one";
const BROADCAST: &str = "the hardware broadcasts flushes, so that no CPU is interrupted";
const TOO_FEW: &str = "too few undisturbed samples";

/// Costs that no calibration measures.
const NEVER: [(&str, &str); 10] = [
    ("scan-cpu", INTERNAL),
    ("balance-pass", INTERNAL),
    ("balance-cpu", INTERNAL),
    ("copy-page-table", "fork is measured as a whole"),
    ("vm-exit", HOST),
    ("vm-exit-nested", HOST),
    ("idle-hint", HOST),
    ("cpu-relax", HOST),
    ("ple-window", HOST),
    ("exec", "the agent does not execute programs; lat_proc of lmbench measures it"),
];

/// Costs between CPUs, and whether tracepoints measure them with one CPU as well.
const BETWEEN_CPUS: [(&str, bool); 5] =
    [("ipi", false), ("ipi-send", false), ("irq", true), ("idle", true), ("line-transfer", false)];

/// Costs that are absent only if their samples were disturbed.
const SAMPLED: [&str; 10] = [
    "syscall",
    "switch-thread",
    "switch-process",
    "wakeup",
    "tick",
    "ipi",
    "ipi-send",
    "irq",
    "line-transfer",
    "tlb-flush",
];

/// The costs that are not among the measured ones, with the reason.
pub fn reasons(
    costs: &BTreeMap<&'static str, Entry>,
    has_caches: bool,
    unmeasured: &Unmeasured,
) -> BTreeMap<&'static str, String> {
    let traced = unmeasured.off_reason.is_none();
    let mut absent: BTreeMap<&'static str, String> = NEVER.map(|(key, why)| (key, why.to_owned())).into();
    let between = BETWEEN_CPUS.iter().filter(|(_, by_tracepoint)| unmeasured.one_cpu && !(*by_tracepoint && traced));
    absent.extend(between.map(|(key, _)| (*key, TWO_CPUS.to_owned())));
    let why = match &unmeasured.off_reason {
        None => TOO_FEW.to_owned(),
        Some(_) if !unmeasured.asked => "measured only with --traced".to_owned(),
        Some(why) => format!("only tracepoints separate it from other costs: {why}"),
    };
    if !cfg!(target_arch = "x86_64") {
        absent.insert("tlb-flush", BROADCAST.to_owned());
    }
    let is_absent = |key: &&&'static str| !costs.contains_key(**key);
    absent.extend(traced::PARTS.iter().filter(is_absent).map(|key| (*key, why.clone())));
    for key in SAMPLED.iter().filter(is_absent) {
        absent.entry(key).or_insert_with(|| TOO_FEW.to_owned());
    }
    if !has_caches {
        absent.insert("caches", "the kernel does not report the sizes of the caches".to_owned());
    }
    absent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_what_was_missing() {
        let cases = [
            (true, Some("no tracefs"), true, "irq", Some(TWO_CPUS)),
            (true, None, true, "irq", Some(TOO_FEW)),
            (true, None, true, "idle", None),
            (false, None, true, "idle", None),
            (false, None, true, "ipi", Some(TOO_FEW)),
            (false, Some("no tracefs"), false, traced::PARTS[0], Some("measured only with --traced")),
            (
                false,
                Some("no tracefs"),
                true,
                traced::PARTS[0],
                Some("only tracepoints separate it from other costs: no tracefs"),
            ),
            (false, None, true, "vm-exit", Some(HOST)),
            (false, None, true, "tlb-flush", Some(if cfg!(target_arch = "x86_64") { TOO_FEW } else { BROADCAST })),
        ];
        for (one_cpu, off_reason, asked, key, want) in cases {
            let unmeasured = Unmeasured { one_cpu, off_reason: off_reason.map(str::to_owned), asked };
            let absent = reasons(&BTreeMap::new(), true, &unmeasured);
            assert_eq!(absent.get(key).map(String::as_str), want, "{key}: one CPU {one_cpu}, {off_reason:?}");
        }
    }
}
