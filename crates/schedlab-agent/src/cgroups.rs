//! The control groups of a run, in the hierarchy that has the cpu controller. They are removed at the end of the run.
//!
//! Groups are children of the hierarchy's root, as in the simulator, with names that are unique to the run. In cgroup
//! v2 they are threaded: as in v1, single threads belong to a group, and a group with tasks may have child groups.
//! Latency nice of groups is not supported because no mainline kernel has it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schedlab_model::USEC;
use schedlab_policy::fair::GroupShares;
use schedlab_spec::{Cgroup, CpuMax};
use schedlab_workload::cpu_stat::CPU_STATS;

use crate::error::{AgentError, Result};

/// The shift of `scale_load`, by which the internal resolution of shares exceeds that of `cpu.shares`.
const FIXEDPOINT_SHIFT: u32 = 10;

/// The interface of the cpu controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// cgroup v1: one hierarchy per controller.
    V1,
    /// cgroup v2: one hierarchy for all controllers.
    V2,
}

/// The groups of one run.
#[derive(Clone, Debug)]
pub struct Groups {
    version: Version,
    root: PathBuf,
    /// The directory of each group, by its path in the scenario; parents come before their children.
    dirs: BTreeMap<String, PathBuf>,
    /// Whether this run enabled the controller for the children of the root.
    enabled_at_root: bool,
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
    /// Creates the groups; `None` if the scenario has none.
    pub fn create(cgroups: &[Cgroup]) -> Result<Option<Groups>> {
        if cgroups.is_empty() {
            return Ok(None);
        }
        let none = || {
            let hint = "mount -t cgroup2 none /sys/fs/cgroup (as root)";
            AgentError::cannot("no mounted cgroup hierarchy has the cpu controller", hint)
        };
        let (version, root) = hierarchy().ok_or_else(none)?;
        let mut groups = Groups { version, root, dirs: BTreeMap::new(), enabled_at_root: false };
        for cgroup in cgroups {
            // What was made so far is removed on the way out.
            let created = groups.create_one(cgroup);
            if let Err(error) = created {
                groups.remove();
                return Err(error);
            }
        }
        Ok(Some(groups))
    }

    /// Writes the quota, in microseconds as the files expect it.
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

    fn create_one(&mut self, cgroup: &Cgroup) -> Result<()> {
        let name = format!("schedlab-{}-{}", std::process::id(), cgroup.path.trim_start_matches('/'));
        let dir = self.root.join(name);
        if self.version == Version::V2 {
            self.enable_controller(dir.parent().unwrap_or(&self.root).to_owned())?;
        }
        let created = fs::create_dir(&dir);
        created.map_err(|error| AgentError::cannot(format!("{}: {error}", dir.display()), "run it as root"))?;
        self.dirs.insert(cgroup.path.clone(), dir.clone());
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
                // The inverse of the kernel's conversion, which maps weight 100 to 1024 shares.
                let weight = (shares * 100 + 512) / 1024;
                write(&dir, "cpu.weight", &weight.clamp(1, 10_000).to_string())
            }
        }
    }

    /// Enables the controller for the children of `above`.
    fn enable_controller(&mut self, above: PathBuf) -> Result<()> {
        const FILE: &str = "cgroup.subtree_control";
        let has = fs::read_to_string(above.join(FILE)).unwrap_or_default();
        if has.split_ascii_whitespace().any(|controller| controller == "cpu") {
            return Ok(());
        }
        write(&above, FILE, "+cpu")?;
        self.enabled_at_root |= above == self.root;
        Ok(())
    }

    /// Moves the calling process, which has one thread, to the root of the hierarchy, from where threads may enter the
    /// groups.
    pub fn enter_root(&self) -> std::io::Result<()> {
        fs::write(self.root.join("cgroup.procs"), "0")
    }

    /// Moves the calling thread into the group with this path.
    pub fn enter(&self, path: &str) -> std::io::Result<()> {
        let dir = self.dirs.get(path).unwrap_or(&self.root);
        let file = match self.version {
            Version::V1 => "tasks",
            Version::V2 => "cgroup.threads",
        };
        fs::write(dir.join(file), "0")
    }

    /// The bandwidth statistics from each group's `cpu.stat`. Groups whose `cpu.stat` has none (controller disabled)
    /// are left out.
    pub fn cpu_stat(&self) -> BTreeMap<String, [u64; CPU_STATS]> {
        let read = |dir: &PathBuf| parse_cpu_stat(&fs::read_to_string(dir.join("cpu.stat")).ok()?);
        self.dirs.iter().filter_map(|(path, dir)| Some((path.clone(), read(dir)?))).collect()
    }

    /// Removes the groups, children first, once their last tasks have exited.
    pub fn remove(&self) {
        for dir in self.dirs.values().rev() {
            let removed = || !dir.exists() || fs::remove_dir(dir).is_ok();
            for _ in 0..200 {
                if removed() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        if self.enabled_at_root {
            // Fails if other groups use the controller by now, which is fine.
            let _ = fs::write(self.root.join("cgroup.subtree_control"), "-cpu");
        }
    }
}

/// Parses `cpu.stat` to times in ns. cgroup v2 has microseconds, v1 nanoseconds under other names. Kernels before 5.15
/// count no bursts.
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
