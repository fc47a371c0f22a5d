//! The initial tasks of a run in order of their start time, and the processes that contain them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use schedlab_spec::RunSpec;
use schedlab_workload::identity;

use crate::cgroups::Groups;
use crate::error::{AgentError, Result};
use crate::life::{self, InitialTask};
use crate::shared_state::{Failure, SharedState};
use crate::supervise::RootActions;
use crate::sys::{self, Forked};
use crate::tracing;

/// The processes that the root process starts: one for each group of tasks; with autogroup, one session per workload.
pub struct Start {
    shared: &'static SharedState,
    groups: Vec<Vec<InitialTask>>,
    autogroup: bool,
    sessions: Vec<i32>,
    leaders: Vec<(i32, u32)>,
    supervisor: u32,
}

impl Start {
    /// Computes the initial tasks and processes of all workloads.
    pub fn plan(shared: &'static SharedState, spec: &RunSpec) -> Result<Start> {
        let groups = groups(shared, spec)?;
        let supervisor = std::process::id();
        Ok(Start { shared, groups, autogroup: spec.autogroup, sessions: Vec::new(), leaders: Vec::new(), supervisor })
    }

    /// The number of initial tasks.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    fn fork(&self, first: u32) -> Option<Forked> {
        let forked = sys::fork();
        if let Err(error) = &forked {
            self.shared.fail(first, 0, Failure::Fork, error.raw_os_error().unwrap_or(0));
        }
        if matches!(forked, Ok(Forked::Child)) {
            sys::unblock_signals();
            let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        }
        forked.ok()
    }

    /// Starts the processes of these groups as children of the caller.
    fn start_leaders(&mut self, groups: &[Vec<InitialTask>]) {
        for tasks in groups {
            let first = tasks.first().map_or(0, |task| task.id);
            match self.fork(first) {
                Some(Forked::Child) => life::run_initial_process(self.shared, tasks),
                Some(Forked::Parent(pid)) => self.leaders.push((pid, first)),
                None => return,
            }
        }
    }

    /// Starts a session leader with the workload's processes as its children, so that they share an autogroup.
    fn start_session(&mut self, groups: &[Vec<InitialTask>]) {
        let first = groups.first().and_then(|tasks| tasks.first()).map_or(0, |task| task.id);
        match self.fork(first) {
            Some(Forked::Child) => {
                let _ = rustix::process::setsid();
                self.leaders.clear();
                self.start_leaders(groups);
                while let Ok(Some((pid, status))) = sys::wait_any(true, false) {
                    self.child_exited(pid, status);
                }
                sys::exit_now(0);
            }
            Some(Forked::Parent(pid)) => {
                self.sessions.push(pid);
                self.leaders.push((pid, first));
            }
            None => {}
        }
    }
}

impl RootActions for Start {
    fn start(&mut self) {
        let groups = std::mem::take(&mut self.groups);
        if let Some(Err(error)) = self.shared.groups.as_ref().map(Groups::enter_root) {
            let first = groups.first().and_then(|tasks| tasks.first()).map_or(0, |task| task.id);
            return self.shared.fail(first, 0, Failure::Cgroup, error.raw_os_error().unwrap_or(0));
        }
        if !self.autogroup {
            return self.start_leaders(&groups);
        }
        let workload_of =
            |tasks: &[InitialTask]| tasks.first().map(|task| self.shared.slots[task.id as usize].runs().0);
        let mut by_workload: BTreeMap<Option<usize>, Vec<Vec<InitialTask>>> = BTreeMap::new();
        for tasks in groups {
            by_workload.entry(workload_of(&tasks)).or_default().push(tasks);
        }
        by_workload.values().for_each(|groups| self.start_session(groups));
    }

    fn child_exited(&mut self, pid: i32, status: i32) {
        if let (Some(_), Some((_, first))) =
            (sys::ended_badly(status), self.leaders.iter().find(|(leader, _)| *leader == pid))
        {
            self.shared.fail(*first, 0, Failure::ChildKilled, 0);
        }
    }

    fn sessions(&self) -> &[i32] {
        &self.sessions
    }

    fn clean_up(&mut self) {
        if let Some(groups) = &self.shared.groups {
            groups.remove();
        }
        tracing::remove_instance_of(self.supervisor);
    }
}

/// The initial tasks by process, in the order in which they start.
fn groups(shared: &SharedState, spec: &RunSpec) -> Result<Vec<Vec<InitialTask>>> {
    let mut planned = Vec::new();
    for (w, workload) in spec.workloads.iter().enumerate() {
        // A real program creates its own tasks.
        let real = shared.real[w].is_some();
        let latest = identity::latest_phase(spec.duration);
        let phase = if spec.noise { identity::start_phase(spec.seed, &spec.workloads, w, latest) } else { 0 };
        for (s, task) in workload.tasks.iter().enumerate().take(if real { 1 } else { usize::MAX }) {
            for instance in 0..if real { 1 } else { task.count } {
                let jitter = spec.noise && task.jitter;
                let rank = planned.len() as u64;
                let (late, rank) = match jitter {
                    true => identity::start_jitter(spec.seed, &workload.name, &task.name, instance),
                    false => (0, rank),
                };
                let key = identity::first_key(&workload.name, &task.name, instance);
                planned.push((task.delay + phase + late, rank, w, s, key));
            }
        }
    }
    planned.sort_unstable();
    let mut groups: Vec<Vec<InitialTask>> = Vec::new();
    let mut of_process = BTreeMap::new();
    for (at, _, w, s, key) in planned {
        let task = &spec.workloads[w].tasks[s];
        let id = shared.new_task().ok_or_else(|| AgentError::input("too many tasks", "lower the counts"))?;
        let slot = &shared.slots[id as usize];
        slot.runs.store((w as u64) << 32 | u64::from(task.program), Relaxed);
        slot.spec.store(s as u32 + 1, Relaxed);
        task.registers.iter().zip(0..).for_each(|(value, reg)| slot.set(reg, *value));
        let first = InitialTask { id, key, at };
        let group = *of_process.entry((w, task.process)).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(first);
    }
    Ok(groups)
}
