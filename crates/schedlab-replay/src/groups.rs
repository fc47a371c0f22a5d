//! The task groups of before the recording, as the trace's header lists them (`docs/record.md`).

use std::collections::BTreeMap;

use schedlab_model::Pid;
use schedlab_policy::fair::GroupShares;
use schedlab_trace::Header;

/// The groups that tasks were in when the recording began, and the shares of control groups.
#[derive(Clone, Default, Debug)]
pub struct InitialGroups {
    tasks: BTreeMap<Pid, Task>,
    shares: BTreeMap<String, GroupShares>,
    /// The control groups in the order of the header.
    paths: Vec<String>,
}

#[derive(Clone, Debug)]
struct Task {
    sched_idle: bool,
    group: GroupName,
}

/// What identifies a group across the header and the probes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum GroupName {
    /// None.
    Root,
    /// An autogroup: its number and nice value.
    Autogroup(u64, i8),
    /// A control group: its path.
    Cgroup(String),
    /// A group that only probes show: its address.
    Probed(u64),
}

impl InitialGroups {
    /// Reads the lines of the header.
    #[must_use]
    pub fn of(header: &Header) -> InitialGroups {
        let mut groups = InitialGroups::default();
        for line in &header.comments {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words[..] {
                ["task", pid, "policy", policy, ref rest @ ..] => {
                    let (Ok(pid), Some(group)) = (pid.parse(), group_name(rest)) else { continue };
                    groups.tasks.insert(pid, Task { sched_idle: policy == "5", group });
                }
                ["cgroup", path, file, weight] => {
                    let shares = match file {
                        "shares" => weight.parse().ok().map(GroupShares::Shares),
                        "weight" => weight.parse().ok().map(GroupShares::Weight),
                        "nice" => weight.parse().ok().map(GroupShares::Nice),
                        _ => None,
                    };
                    let Some(shares) = shares else { continue };
                    groups.paths.push(path.to_owned());
                    groups.shares.insert(path.to_owned(), shares);
                }
                _ => {}
            }
        }
        groups
    }

    /// How many tasks the header lists.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether the header lists no task.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The group that the header gives for a task; `None`: it does not list the task.
    pub fn find(&self, pid: Pid) -> Option<&GroupName> {
        self.tasks.get(&pid).map(|task| &task.group)
    }

    /// The same, the root group for a task that is not listed.
    pub fn group_of(&self, pid: Pid) -> GroupName {
        self.find(pid).cloned().unwrap_or(GroupName::Root)
    }

    /// The group with a number of a simulated trace: 0 is the root, then come those of the header, then autogroups.
    pub fn numbered(&self, group: u32) -> GroupName {
        match (group, self.paths.get((group as usize).wrapping_sub(1))) {
            (0, _) => GroupName::Root,
            (_, Some(path)) => GroupName::Cgroup(path.clone()),
            (_, None) => GroupName::Autogroup(u64::from(group), 0),
        }
    }

    /// Whether a task was SCHED_IDLE, which no record shows.
    pub fn is_sched_idle(&self, pid: Pid) -> bool {
        self.tasks.get(&pid).is_some_and(|task| task.sched_idle)
    }

    /// The shares of a group, where the header gives them.
    #[must_use]
    pub fn shares(&self, group: &GroupName) -> Option<GroupShares> {
        match group {
            GroupName::Root | GroupName::Probed(_) => None,
            GroupName::Autogroup(_, nice) => Some(GroupShares::Nice(*nice)),
            GroupName::Cgroup(path) => self.shares.get(path).copied(),
        }
    }
}

fn group_name(words: &[&str]) -> Option<GroupName> {
    match words {
        [] => Some(GroupName::Root),
        ["autogroup", id, nice] => Some(GroupName::Autogroup(id.parse().ok()?, nice.parse().ok()?)),
        ["cgroup", path] => Some(GroupName::Cgroup((*path).to_owned())),
        _ => None,
    }
}

impl GroupName {
    /// The group that contains it.
    #[must_use]
    pub fn parent(&self) -> GroupName {
        match self {
            GroupName::Cgroup(path) => match path.rsplit_once('/') {
                Some((above, _)) if !above.is_empty() => GroupName::Cgroup(above.to_owned()),
                _ => GroupName::Root,
            },
            GroupName::Root | GroupName::Autogroup(..) | GroupName::Probed(_) => GroupName::Root,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_lists_tasks_with_their_groups() {
        let lines = ["hz 250", "cgroup /a weight 50", "cgroup /a/b weight 200", "task 7 policy 5 cgroup /a/b"];
        let lines = lines.iter().chain(&["task 8 policy 0 autogroup 12 -5", "task 9 policy 0", "task x policy 0"]);
        let comments = lines.map(|line| (*line).to_owned()).collect();
        let groups = InitialGroups::of(&Header { comments, ..Header::default() });
        let b = GroupName::Cgroup("/a/b".to_owned());
        assert_eq!((groups.len(), groups.group_of(7), groups.is_sched_idle(7)), (3, b.clone(), true));
        assert_eq!((b.parent(), b.parent().parent()), (GroupName::Cgroup("/a".to_owned()), GroupName::Root));
        assert_eq!(groups.shares(&b), Some(GroupShares::Weight(200)));
        assert_eq!(groups.shares(&groups.group_of(8)), Some(GroupShares::Nice(-5)));
        assert_eq!((groups.group_of(9), groups.group_of(10)), (GroupName::Root, GroupName::Root));
    }
}
