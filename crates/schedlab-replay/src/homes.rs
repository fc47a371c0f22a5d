//! Groups of the tasks that a machine had when its recording began, as the trace's header says (`docs/record.md`).

use std::collections::BTreeMap;

use schedlab_model::Pid;
use schedlab_policy::fair::GroupShares;
use schedlab_trace::Header;

/// Who is in which group, and what groups weigh.
#[derive(Clone, Default, Debug)]
pub struct Homes {
    tasks: BTreeMap<Pid, Task>,
    weights: BTreeMap<String, GroupShares>,
}

#[derive(Clone, Debug)]
struct Task {
    idle: bool,
    home: Home,
}

/// A task's group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Home {
    Root,
    /// A session's, by its number, with its nice value.
    Session(u64, i8),
    /// A control group, by its path.
    Control(String),
    /// One that only probes tell of.
    Shown(u64),
}

impl Homes {
    pub fn of(header: &Header) -> Homes {
        let mut homes = Homes::default();
        for line in &header.comments {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words[..] {
                ["task", pid, "policy", policy, ref rest @ ..] => {
                    let (Ok(pid), Some(home)) = (pid.parse(), home(rest)) else { continue };
                    homes.tasks.insert(pid, Task { idle: policy == "5", home });
                }
                ["cgroup", path, file, weight] => {
                    let shares = match (file, weight.parse()) {
                        ("shares", Ok(shares)) => GroupShares::Shares(shares),
                        ("weight", Ok(weight)) => GroupShares::Weight(weight),
                        _ => continue,
                    };
                    homes.weights.insert(path.to_owned(), shares);
                }
                _ => {}
            }
        }
        homes
    }

    /// How many tasks the header speaks of.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Where the header says a task is; `None`: it does not know the task.
    pub fn find(&self, pid: Pid) -> Option<&Home> {
        self.tasks.get(&pid).map(|task| &task.home)
    }

    pub fn home(&self, pid: Pid) -> Home {
        self.find(pid).cloned().unwrap_or(Home::Root)
    }

    /// SCHED_IDLE shows in no record.
    pub fn idle(&self, pid: Pid) -> bool {
        self.tasks.get(&pid).is_some_and(|task| task.idle)
    }

    pub fn shares(&self, home: &Home) -> Option<GroupShares> {
        match home {
            Home::Root | Home::Shown(_) => None,
            Home::Session(_, nice) => Some(GroupShares::Nice(*nice)),
            Home::Control(path) => self.weights.get(path).copied(),
        }
    }
}

fn home(words: &[&str]) -> Option<Home> {
    match words {
        [] => Some(Home::Root),
        ["autogroup", id, nice] => Some(Home::Session(id.parse().ok()?, nice.parse().ok()?)),
        ["cgroup", path] => Some(Home::Control((*path).to_owned())),
        _ => None,
    }
}

impl Home {
    /// The group above it.
    pub fn parent(&self) -> Home {
        match self {
            Home::Control(path) => match path.rsplit_once('/') {
                Some((above, _)) if !above.is_empty() => Home::Control(above.to_owned()),
                _ => Home::Root,
            },
            Home::Root | Home::Session(..) | Home::Shown(_) => Home::Root,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_places_tasks() {
        let lines = ["hz 250", "cgroup /a weight 50", "cgroup /a/b weight 200", "task 7 policy 5 cgroup /a/b"];
        let lines = lines.iter().chain(&["task 8 policy 0 autogroup 12 -5", "task 9 policy 0", "task x policy 0"]);
        let comments = lines.map(|line| (*line).to_owned()).collect();
        let homes = Homes::of(&Header { comments, ..Header::default() });
        let b = Home::Control("/a/b".to_owned());
        assert_eq!((homes.len(), homes.home(7), homes.idle(7)), (3, b.clone(), true));
        assert_eq!((b.parent(), b.parent().parent()), (Home::Control("/a".to_owned()), Home::Root));
        assert_eq!(homes.shares(&b), Some(GroupShares::Weight(200)));
        assert_eq!(homes.shares(&homes.home(8)), Some(GroupShares::Nice(-5)));
        assert_eq!((homes.home(9), homes.home(10)), (Home::Root, Home::Root));
    }
}
