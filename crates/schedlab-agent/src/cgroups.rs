//! The control groups of a run, in whichever hierarchy has the cpu controller; removed when the run is over.
//!
//! Groups are children of the hierarchy's root, as on the simulator, under names that no other run has. Where the
//! controller is in cgroup v2 they are threaded: as in v1, single threads belong to them, and a group with tasks may have
//! groups below it. Left out: latency nice of groups, which no mainline kernel has.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schedlab_model::USEC;
use schedlab_policy::fair::GroupShares;
use schedlab_spec::{Cgroup, CpuMax};
use schedlab_workload::cpu_stat::CPU_STATS;

use crate::error::{AgentError, Result};

/// Bits of `scale_load`: shares at full resolution have them below the file's unit.
const FIXEDPOINT_SHIFT: u32 = 10;

/// Which interface the cpu controller has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// A hierarchy of each controller.
    V1,
    /// One hierarchy of all.
    V2,
}

/// The groups of one run.
#[derive(Clone, Debug)]
pub struct Groups {
    version: Version,
    root: PathBuf,
    /// Directory of each group, by the scenario's path; those above come first.
    made: BTreeMap<String, PathBuf>,
    /// The root did not hand the controller on before.
    handed_on: bool,
}

/// The mounted hierarchy with the cpu controller.
pub fn hierarchy() -> Option<(Version, PathBuf)> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut found = None;
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, path, kind, options, ..] = fields[..] else { continue };
        if kind == "cgroup" && options.split(',').any(|option| option == "cpu") {
            return Some((Version::V1, PathBuf::from(path)));
        }
        let controllers = fs::read_to_string(Path::new(path).join("cgroup.controllers")).unwrap_or_default();
        if kind == "cgroup2" && controllers.split_ascii_whitespace().any(|controller| controller == "cpu") {
            found = Some((Version::V2, PathBuf::from(path)));
        }
    }
    found
}

impl Groups {
    /// Makes them; `None` if the scenario has none.
    pub fn make(cgroups: &[Cgroup]) -> Result<Option<Groups>> {
        if cgroups.is_empty() {
            return Ok(None);
        }
        let none = || {
            let hint = "mount -t cgroup2 none /sys/fs/cgroup (as root)";
            AgentError::cannot("no hierarchy of control groups has the cpu controller", hint)
        };
        let (version, root) = hierarchy().ok_or_else(none)?;
        let mut groups = Groups { version, root, made: BTreeMap::new(), handed_on: false };
        for cgroup in cgroups {
            // What was made so far is removed on the way out.
            let made = groups.make_one(cgroup);
            if let Err(error) = made {
                groups.remove();
                return Err(error);
            }
        }
        Ok(Some(groups))
    }

    /// The quota, in the microseconds that the files take.
    fn limit(&self, dir: &Path, max: CpuMax) -> Result<()> {
        let [quota, period, burst] = [max.quota, max.period, max.burst].map(|ns| (ns / USEC).to_string());
        let burst_file = match self.version {
            Version::V1 => {
                write(dir, "cpu.cfs_period_us", &period)?;
                write(dir, "cpu.cfs_quota_us", &quota)?;
                "cpu.cfs_burst_us"
            }
            Version::V2 => {
                write(dir, "cpu.max", &format!("{quota} {period}"))?;
                "cpu.max.burst"
            }
        };
        if max.burst == 0 {
            return Ok(());
        }
        write(dir, burst_file, &burst)
    }

    fn make_one(&mut self, cgroup: &Cgroup) -> Result<()> {
        let name = format!("schedlab-{}-{}", std::process::id(), cgroup.path.trim_start_matches('/'));
        let dir = self.root.join(name);
        if self.version == Version::V2 {
            self.hand_on(dir.parent().unwrap_or(&self.root).to_owned())?;
        }
        let made = fs::create_dir(&dir);
        made.map_err(|error| AgentError::cannot(format!("{}: {error}", dir.display()), "run it as root"))?;
        self.made.insert(cgroup.path.clone(), dir.clone());
        if self.version == Version::V2 {
            write(&dir, "cgroup.type", "threaded")?;
        }
        if let Some(max) = cgroup.bandwidth {
            self.limit(&dir, max)?;
        }
        if cgroup.idle {
            return write(&dir, "cpu.idle", "1");
        }
        match (self.version, cgroup.shares) {
            (_, None) => Ok(()),
            (Version::V1, Some(shares)) => write(&dir, "cpu.shares", &(shares.full() >> FIXEDPOINT_SHIFT).to_string()),
            (Version::V2, Some(GroupShares::Weight(weight))) => write(&dir, "cpu.weight", &weight.to_string()),
            (Version::V2, Some(GroupShares::Nice(nice))) => write(&dir, "cpu.weight.nice", &nice.to_string()),
            (Version::V2, Some(GroupShares::Shares(shares))) => {
                // The inverse of the kernel's own conversion, which has 100 for 1024.
                let weight = (shares * 100 + 512) / 1024;
                write(&dir, "cpu.weight", &weight.clamp(1, 10_000).to_string())
            }
        }
    }

    /// Gives the children of `above` the controller.
    fn hand_on(&mut self, above: PathBuf) -> Result<()> {
        const FILE: &str = "cgroup.subtree_control";
        let has = fs::read_to_string(above.join(FILE)).unwrap_or_default();
        if has.split_ascii_whitespace().any(|controller| controller == "cpu") {
            return Ok(());
        }
        write(&above, FILE, "+cpu")?;
        self.handed_on |= above == self.root;
        Ok(())
    }

    /// Moves the calling process, which has one thread, to the root of the hierarchy: threads can leave it from there.
    pub fn enter_root(&self) -> std::io::Result<()> {
        fs::write(self.root.join("cgroup.procs"), "0")
    }

    /// Moves the calling thread into the group of a path.
    pub fn enter(&self, path: &str) -> std::io::Result<()> {
        let dir = self.made.get(path).unwrap_or(&self.root);
        let file = match self.version {
            Version::V1 => "tasks",
            Version::V2 => "cgroup.threads",
        };
        fs::write(dir.join(file), "0")
    }

    /// What each group's `cpu.stat` counts of its quota; left out where it counts none (the controller is off).
    pub fn cpu_stat(&self) -> BTreeMap<String, [u64; CPU_STATS]> {
        let read = |dir: &PathBuf| parse_cpu_stat(&fs::read_to_string(dir.join("cpu.stat")).ok()?);
        self.made.iter().filter_map(|(path, dir)| Some((path.clone(), read(dir)?))).collect()
    }

    /// Removes them, the deepest first, once their last tasks are gone.
    pub fn remove(&self) {
        for dir in self.made.values().rev() {
            let gone = || !dir.exists() || fs::remove_dir(dir).is_ok();
            for _ in 0..200 {
                if gone() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        if self.handed_on {
            // Somebody else may have come to need it.
            let _ = fs::write(self.root.join("cgroup.subtree_control"), "-cpu");
        }
    }
}

/// Times in ns: cgroup v2 has them in microseconds, v1 in ns under other names. Kernels before 5.15 count no bursts.
fn parse_cpu_stat(text: &str) -> Option<[u64; CPU_STATS]> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    let time = |v2: &str, v1: &str| field(v2).map(|usec| usec * USEC).or_else(|| field(v1));
    Some([
        field("nr_periods")?,
        field("nr_throttled")?,
        time("throttled_usec", "throttled_time")?,
        field("nr_bursts").unwrap_or(0),
        time("burst_usec", "burst_time").unwrap_or(0),
    ])
}

fn write(dir: &Path, file: &str, value: &str) -> Result<()> {
    let path = dir.join(file);
    let hint = "run it as root, on a kernel that has this file";
    fs::write(&path, value).map_err(|error| AgentError::cannot(format!("{}: {error}", path.display()), hint))
}

#[cfg(test)]
mod tests {
    use super::parse_cpu_stat;

    #[test]
    fn both_interfaces_are_read_in_ns() {
        let v2 = "usage_usec 900\nnr_periods 10\nnr_throttled 7\nthrottled_usec 81\nnr_bursts 2\nburst_usec 5\n";
        let v1 = "nr_periods 10\nnr_throttled 7\nthrottled_time 81000\n";
        assert_eq!(parse_cpu_stat(v2), Some([10, 7, 81_000, 2, 5000]));
        assert_eq!(parse_cpu_stat(v1), Some([10, 7, 81_000, 0, 0]));
        assert_eq!(parse_cpu_stat("usage_usec 1\n"), None);
    }
}
