//! A loaded scheduler and the functions of the class that call its operations, in the order of kernel/sched/ext.c of
//! 6.12.

use std::collections::BTreeMap;

use schedlab_bpf::{check, BpfError, Btf, Machine, Memory, Object, Write};
use schedlab_model::stream;

use crate::core::{Calling, Core, Cpu, Dsq, Exit, ExitKind, Place, Task, TaskNo};
use crate::core::{DSQ_GLOBAL, DSQ_LOCAL, ENQ_HEAD, ENQ_LAST, SLICE_DFL};
use crate::layout::Layout;

/// `SCX_DSP_MAX_LOOPS` and `SCX_DSP_DFL_MAX_BATCH`.
const DSP_MAX_LOOPS: u32 = 32;
const DSP_DFL_MAX_BATCH: u64 = 32;
/// `SCX_WATCHDOG_MAX_TIMEOUT`, in ms.
const MAX_TIMEOUT_MS: u64 = 30_000;
/// The most instructions of a run: a load of a minute takes a few millions.
const MOST_INSTRUCTIONS: u64 = 1_000_000_000;
const OPS_ENQ_LAST: u64 = 1 << 1;
const DEQ_SLEEP: u64 = 1;
const ENQ_WAKEUP: u64 = 1;
const KICK_IDLE: u64 = 1;
const KICK_PREEMPT: u64 = 2;

/// A scheduler on a machine: the core's state, and the object that decides.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(crate) core: Core,
    pub(crate) machine: Machine,
    operations: BTreeMap<String, usize>,
    flags: u64,
    /// After so many ns a runnable task that does not run is an error.
    pub(crate) timeout: u64,
}

impl Scheduler {
    /// Loads the scheduler of an object for a kernel with these types, on a machine with up to 64 CPUs, and calls its
    /// `init`. `variables` are set before.
    ///
    /// # Errors
    /// The object has no scheduler, needs what is not modelled, or has no such variable. A scheduler that ends within
    /// `init` has an [`Exit`] instead.
    pub fn load(
        object: Object,
        kernel: &Btf,
        cpus: usize,
        seed: u64,
        variables: &[(String, i64)],
    ) -> Result<Scheduler, BpfError> {
        let ops = object.scheduler()?.clone();
        refuse(&object, kernel)?;
        let layout = Layout::new(kernel)?;
        let mut machine = Machine::new(object, kernel, cpus)?;
        for (name, value) in variables {
            machine.set_variable(name, *value)?;
        }
        let number = |name: &str| {
            let bytes = ops.values.get(name)?;
            let mut word = [0; 8];
            let len = bytes.len().min(8);
            word[..len].copy_from_slice(&bytes[..len]);
            Some(u64::from_le_bytes(word))
        };
        let mut masks = BTreeMap::new();
        for name in ["online", "idle", "smt"] {
            masks.insert(name, machine.memory.add("a cpumask", 1024, Write::None, true)?);
        }
        let idle = Cpu { idle: true, is_idle: true, ..Cpu::default() };
        let core = Core {
            layout,
            now: 0,
            this_cpu: 0,
            tasks: Vec::new(),
            by_address: BTreeMap::new(),
            cpus: vec![idle; cpus.clamp(1, 64)],
            dsqs: BTreeMap::from([(DSQ_GLOBAL, Dsq::default())]),
            calling: Calling::Nothing,
            buffer: Vec::new(),
            max_batch: number("dispatch_max_batch").unwrap_or(DSP_DFL_MAX_BATCH) as usize,
            kicks: Vec::new(),
            exit: None,
            random: stream(seed, "scx"),
            masks,
        };
        let timeout = number("timeout_ms").unwrap_or(MAX_TIMEOUT_MS).min(MAX_TIMEOUT_MS) * 1_000_000;
        let flags = number("flags").unwrap_or(0);
        let mut scheduler = Scheduler { core, machine, operations: ops.functions, flags, timeout };
        if flags & OPS_ENQ_LAST != 0 && !scheduler.has("enqueue") {
            let message = "SCX_OPS_ENQ_LAST requires ops.enqueue() to be implemented";
            scheduler.core.error(ExitKind::Error, message.to_owned());
        }
        let done = scheduler.operation("init", &[], Calling::Init).unwrap_or(0) as i32;
        if done != 0 {
            scheduler.core.error(ExitKind::Error, format!("ops.init() failed ({done})"));
        }
        Ok(scheduler)
    }

    /// Why the scheduler has ended, if it has.
    #[must_use]
    pub fn exit(&self) -> Option<&Exit> {
        self.core.exit.as_ref()
    }

    fn has(&self, operation: &str) -> bool {
        self.operations.contains_key(operation)
    }

    /// Calls an operation; `None`: the scheduler does not have it, or has ended.
    fn operation(&mut self, name: &str, args: &[u64], calling: Calling) -> Option<u64> {
        let function = *self.operations.get(name)?;
        if self.core.exit.is_some() {
            return None;
        }
        let before = std::mem::replace(&mut self.core.calling, calling);
        let done = self.machine.call(&mut self.core, function, args);
        let after = std::mem::replace(&mut self.core.calling, before);
        let place = match &done {
            Err(stop) => {
                self.core.error(ExitKind::Error, stop.message.clone());
                format!("ops.{name}() in {}", stop.place)
            }
            Ok(_) => format!("ops.{name}()"),
        };
        if let Some(exit) = self.core.exit.as_mut().filter(|exit| exit.place.is_empty()) {
            exit.place = place;
        }
        let _ = after;
        done.ok()
    }

    fn task_operation(&mut self, name: &str, task: TaskNo, more: &[u64]) {
        let mut args = vec![self.core.tasks[task].address()];
        args.extend(more);
        self.operation(name, &args, Calling::Other);
    }

    /// `scx_init_task` and `scx_enable_task`: a task joins the class; its weight is that of a control group (100 at
    /// nice 0).
    pub(crate) fn add_task(&mut self, name: &str, weight: u64, allowed: u64) -> Result<TaskNo, BpfError> {
        let layout = self.core.layout.clone();
        let writable = Write::Ranges([layout.slice, layout.vtime].map(|(from, size)| (from, from + size)).to_vec());
        let memory = &mut self.machine.memory;
        let region = memory.add(&format!("struct task_struct of {name}"), layout.task_size, writable, true)?;
        let mask_region = memory.add("the cpumask of a task", 1024, Write::None, true)?;
        let (task, pid) = (self.core.tasks.len(), self.core.tasks.len() as i32 + 100);
        let set = |memory: &mut Memory, field: Option<(usize, usize)>, bytes: &[u8]| {
            if let Some((offset, size)) = field {
                memory.set(region, offset, &bytes[..size.min(bytes.len())]);
            }
        };
        set(memory, Some(layout.pid), &pid.to_le_bytes());
        set(memory, layout.weight, &weight.to_le_bytes());
        set(memory, layout.comm, name.as_bytes());
        set(memory, Some(layout.slice), &SLICE_DFL.to_le_bytes());
        set(memory, layout.allowed, &Memory::address(mask_region, 0).to_le_bytes());
        let allowed = allowed & self.core.every_cpu();
        let state = Task {
            region,
            mask_region,
            pid,
            name: name.to_owned(),
            cpu: allowed.trailing_zeros() as usize,
            allowed: 0,
            queued: false,
            place: Place::Nowhere,
            qseq: 0,
            direct: None,
            runnable_at: None,
        };
        self.core.by_address.insert(state.address(), task);
        self.core.tasks.push(state);
        self.set_allowed(task, allowed);
        let args = self.machine.memory.add("struct scx_init_task_args", layout.init_args_size, Write::None, true)?;
        let init = [self.core.tasks[task].address(), Memory::address(args, 0)];
        let failed = self.operation("init_task", &init, Calling::Init).unwrap_or(0) as i32;
        if failed != 0 {
            self.core.error(ExitKind::Error, format!("ops.init_task() failed ({failed})"));
        }
        self.task_operation("enable", task, &[]);
        self.task_operation("set_weight", task, &[weight]);
        Ok(task)
    }

    fn set_allowed(&mut self, task: TaskNo, allowed: u64) {
        let (layout, memory) = (&self.core.layout, &mut self.machine.memory);
        let state = &mut self.core.tasks[task];
        state.allowed = allowed;
        memory.set(state.mask_region, 0, &allowed.to_le_bytes());
        if let Some((offset, size)) = layout.allowed_count {
            memory.set(state.region, offset, &u64::from(allowed.count_ones()).to_le_bytes()[..size.min(8)]);
        }
    }

    /// `select_task_rq_scx`.
    fn select_task_rq_scx(&mut self, task: TaskNo, wake_flags: u64) -> usize {
        let (prev, allowed) = (self.core.tasks[task].cpu, self.core.tasks[task].allowed);
        if allowed.count_ones() == 1 {
            return allowed.trailing_zeros() as usize;
        }
        let cpu = if self.has("select_cpu") {
            let args = [self.core.tasks[task].address(), prev as u64, wake_flags];
            let chosen = self.operation("select_cpu", &args, Calling::Direct { task, done: false });
            let chosen = chosen.unwrap_or(prev as u64);
            match self.core.cpu_at(chosen) {
                Ok(cpu) => cpu,
                Err(message) => {
                    self.core.error(ExitKind::Error, format!("{message} from ops.select_cpu()"));
                    prev
                }
            }
        } else {
            let (cpu, found) = self.core.select_cpu_dfl(task, prev, wake_flags);
            if found {
                self.core.set_slice(&mut self.machine.memory, task, SLICE_DFL);
                self.core.tasks[task].direct = Some((DSQ_LOCAL, 0));
            }
            cpu
        };
        // `select_fallback_rq`: a CPU outside of the mask is replaced silently.
        if self.core.allows(task, cpu) {
            cpu
        } else {
            allowed.trailing_zeros() as usize
        }
    }

    /// `try_to_wake_up` by a task or an interrupt on the CPU `from`.
    pub(crate) fn wake_up(&mut self, task: TaskNo, from: usize, sync: bool) {
        const WAKE_TTWU: u64 = 1 << 3;
        const WAKE_SYNC: u64 = 1 << 4;
        self.core.this_cpu = from;
        let cpu = self.select_task_rq_scx(task, WAKE_TTWU | if sync { WAKE_SYNC } else { 0 });
        self.core.tasks[task].cpu = cpu;
        self.enqueue_task_scx(task, ENQ_WAKEUP);
    }

    /// `enqueue_task_scx`, and the preemption check of a wakeup: an idle CPU reschedules.
    fn enqueue_task_scx(&mut self, task: TaskNo, flags: u64) {
        self.core.tasks[task].queued = true;
        self.set_task_runnable(task);
        self.task_operation("runnable", task, &[flags]);
        self.do_enqueue_task(task, flags);
        let cpu = self.core.tasks[task].cpu;
        self.core.cpus[cpu].need_resched |= self.core.cpus[cpu].curr.is_none();
    }

    fn set_task_runnable(&mut self, task: TaskNo) {
        let now = self.core.now;
        self.core.tasks[task].runnable_at.get_or_insert(now);
    }

    /// `do_enqueue_task`.
    fn do_enqueue_task(&mut self, task: TaskNo, flags: u64) {
        if self.core.tasks[task].direct.is_none() {
            if !self.has("enqueue") {
                self.core.set_slice(&mut self.machine.memory, task, SLICE_DFL);
                return self.core.dispatch_enqueue(&mut self.machine.memory, DSQ_GLOBAL, task, flags);
            }
            self.core.tasks[task].qseq += 1;
            let args = [self.core.tasks[task].address(), flags];
            self.operation("enqueue", &args, Calling::Direct { task, done: false });
        }
        match self.core.tasks[task].direct.take() {
            Some((dsq, its)) => self.core.dispatch_enqueue(&mut self.machine.memory, dsq, task, flags | its),
            None => self.core.tasks[task].place = Place::Bpf,
        }
    }

    /// `dequeue_task_scx`. A running task stops.
    fn dequeue_task_scx(&mut self, task: TaskNo, flags: u64) {
        let cpu = self.core.tasks[task].cpu;
        if self.core.tasks[task].place == Place::Bpf {
            self.task_operation("dequeue", task, &[flags]);
        }
        self.core.dispatch_dequeue(task);
        self.core.tasks[task].direct = None;
        if self.core.cpus[cpu].curr == Some(task) {
            self.update_curr_scx(cpu);
            self.task_operation("stopping", task, &[0]);
        }
        self.task_operation("quiescent", task, &[flags]);
        self.core.tasks[task].queued = false;
        self.core.tasks[task].runnable_at = None;
    }

    /// The running task of a CPU sleeps.
    pub(crate) fn block(&mut self, cpu: usize) {
        self.core.this_cpu = cpu;
        if let Some(task) = self.core.cpus[cpu].curr {
            self.dequeue_task_scx(task, DEQ_SLEEP);
            self.core.cpus[cpu].need_resched = true;
        }
    }

    /// `yield_task_scx` of a scheduler without `yield`.
    pub(crate) fn yield_task(&mut self, cpu: usize) {
        self.core.this_cpu = cpu;
        if let Some(task) = self.core.cpus[cpu].curr {
            if self.has("yield") {
                let args = [self.core.tasks[task].address(), 0];
                self.operation("yield", &args, Calling::Other);
            } else {
                self.core.set_slice(&mut self.machine.memory, task, 0);
            }
            self.core.cpus[cpu].need_resched = true;
        }
    }

    /// `set_cpus_allowed_scx`, of a task in any state.
    pub(crate) fn set_cpus_allowed(&mut self, task: TaskNo, allowed: u64) {
        let cpu = self.core.tasks[task].cpu;
        let (queued, running) = (self.core.tasks[task].queued, self.core.cpus[cpu].curr == Some(task));
        self.core.this_cpu = cpu;
        if queued {
            self.dequeue_task_scx(task, 0);
        }
        self.set_allowed(task, allowed & self.core.every_cpu());
        let mask = Memory::address(self.core.tasks[task].mask_region, 0);
        self.task_operation("set_cpumask", task, &[mask]);
        if !self.core.allows(task, cpu) {
            self.core.tasks[task].cpu = self.core.tasks[task].allowed.trailing_zeros() as usize;
            if running {
                self.core.cpus[cpu].curr = None;
                self.core.cpus[cpu].need_resched = true;
            }
        }
        if !queued {
            return;
        }
        self.core.tasks[task].queued = true;
        self.task_operation("runnable", task, &[0]);
        if running && self.core.allows(task, cpu) {
            self.core.cpus[cpu].exec_start = self.core.now;
            self.task_operation("running", task, &[]);
        } else {
            self.set_task_runnable(task);
            self.do_enqueue_task(task, 0);
            let cpu = self.core.tasks[task].cpu;
            self.core.cpus[cpu].need_resched |= self.core.cpus[cpu].curr.is_none();
        }
    }

    /// `update_curr_scx`.
    fn update_curr_scx(&mut self, cpu: usize) {
        let Some(task) = self.core.cpus[cpu].curr else { return };
        let delta = self.core.now - self.core.cpus[cpu].exec_start;
        self.core.cpus[cpu].exec_start = self.core.now;
        let slice = self.core.slice(&self.machine.memory, task);
        if slice != u64::MAX {
            self.core.set_slice(&mut self.machine.memory, task, slice.saturating_sub(delta));
        }
    }

    /// `task_tick_scx`.
    pub(crate) fn task_tick_scx(&mut self, cpu: usize) {
        let Some(task) = self.core.cpus[cpu].curr else { return };
        self.core.this_cpu = cpu;
        self.update_curr_scx(cpu);
        self.task_operation("tick", task, &[]);
        self.core.cpus[cpu].need_resched |= self.core.slice(&self.machine.memory, task) == 0;
    }

    /// `balance_one`: whether the running task is to be kept.
    fn balance_one(&mut self, cpu: usize) -> bool {
        let prev = self.core.cpus[cpu].curr;
        let runnable = prev.filter(|task| self.core.tasks[*task].queued);
        self.update_curr_scx(cpu);
        let keeps = |s: &Scheduler| runnable.is_some_and(|task| s.core.slice(&s.machine.memory, task) > 0);
        if keeps(self) {
            return true;
        }
        if self.has_tasks(cpu) {
            return false;
        }
        if self.has("dispatch") {
            for turn in 1..=DSP_MAX_LOOPS {
                let address = prev.map_or(0, |task| self.core.tasks[task].address());
                self.operation("dispatch", &[cpu as u64, address], Calling::Dispatch { cpu });
                let dispatched = self.core.flush_dispatch_buf(&mut self.machine.memory, cpu);
                if keeps(self) {
                    return true;
                }
                if self.has_tasks(cpu) {
                    return false;
                }
                if dispatched == 0 || self.core.exit.is_some() {
                    break;
                }
                if turn == DSP_MAX_LOOPS {
                    self.core.kicks.push((cpu, 0));
                }
            }
        }
        runnable.is_some() && self.flags & OPS_ENQ_LAST == 0
    }

    fn has_tasks(&mut self, cpu: usize) -> bool {
        !self.core.cpus[cpu].local.tasks.is_empty()
            || self.core.consume_dispatch_q(&mut self.machine.memory, cpu, DSQ_GLOBAL)
    }

    /// `__schedule` with `balance_scx`, `pick_task_scx`, `put_prev_task_scx` and `set_next_task_scx`.
    fn schedule(&mut self, cpu: usize) {
        self.core.this_cpu = cpu;
        self.core.cpus[cpu].need_resched = false;
        let prev = self.core.cpus[cpu].curr;
        let keep = self.balance_one(cpu);
        let next = match prev.filter(|_| keep) {
            Some(prev) => {
                if self.core.slice(&self.machine.memory, prev) == 0 {
                    self.core.set_slice(&mut self.machine.memory, prev, SLICE_DFL);
                }
                Some(prev)
            }
            None => self.core.cpus[cpu].local.tasks.first().map(|(task, _)| *task),
        };
        if let Some(next) = next {
            if self.core.slice(&self.machine.memory, next) == 0 {
                self.core.set_slice(&mut self.machine.memory, next, SLICE_DFL);
            }
        }
        if prev == next && prev.is_some() {
            return;
        }
        if let Some(prev) = prev {
            self.put_prev_task_scx(cpu, prev, next.is_none());
        }
        self.core.cpus[cpu].curr = next;
        match next {
            Some(next) => self.set_next_task_scx(cpu, next),
            None => self.update_idle(cpu, true),
        }
    }

    fn put_prev_task_scx(&mut self, cpu: usize, prev: TaskNo, idle_follows: bool) {
        if !self.core.tasks[prev].queued {
            return;
        }
        self.update_curr_scx(cpu);
        self.task_operation("stopping", prev, &[1]);
        self.set_task_runnable(prev);
        if self.core.slice(&self.machine.memory, prev) > 0 {
            self.core.dispatch_to_local_dsq(&mut self.machine.memory, cpu, prev, ENQ_HEAD);
        } else {
            self.do_enqueue_task(prev, if idle_follows { ENQ_LAST } else { 0 });
            let on_local = self.core.tasks[prev].place == Place::Local(cpu);
            self.core.cpus[cpu].need_resched |= idle_follows && on_local;
        }
    }

    fn set_next_task_scx(&mut self, cpu: usize, next: TaskNo) {
        self.core.dispatch_dequeue(next);
        self.core.cpus[cpu].exec_start = self.core.now;
        self.task_operation("running", next, &[]);
        self.core.tasks[next].runnable_at = None;
        self.update_idle(cpu, false);
    }

    /// `__scx_update_idle`.
    fn update_idle(&mut self, cpu: usize, idle: bool) {
        let state = &mut self.core.cpus[cpu];
        let changes = state.is_idle != idle;
        (state.idle, state.is_idle) = (idle, idle);
        if changes {
            self.operation("update_idle", &[cpu as u64, u64::from(idle)], Calling::Other);
        }
    }

    /// Carries out kicks and reschedules until none is left.
    ///
    /// After a number of rounds within one instant a livelock is an error of the scheduler.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            for (cpu, flags) in std::mem::take(&mut self.core.kicks) {
                self.kick(cpu, flags);
            }
            let Some(cpu) = self.core.cpus.iter().position(|cpu| cpu.need_resched) else { return };
            if self.machine.executed() > MOST_INSTRUCTIONS {
                let message = format!("the scheduler has executed more than {MOST_INSTRUCTIONS} instructions");
                self.core.error(ExitKind::Error, message);
            }
            if self.core.exit.is_some() {
                return;
            }
            self.schedule(cpu);
        }
        let message = "the CPUs reschedule without end: kicks or dispatches follow each other within one instant";
        self.core.error(ExitKind::Error, message.to_owned());
    }

    /// `kick_one_cpu`.
    fn kick(&mut self, cpu: usize, flags: u64) {
        if flags & KICK_IDLE != 0 && !self.core.cpus[cpu].is_idle {
            return;
        }
        if flags & KICK_PREEMPT != 0 {
            if let Some(task) = self.core.cpus[cpu].curr {
                self.core.set_slice(&mut self.machine.memory, task, 0);
            }
        }
        self.core.cpus[cpu].need_resched = true;
    }

    /// `check_rq_for_timeouts` of every CPU.
    pub(crate) fn check_for_timeouts(&mut self) {
        let (now, timeout) = (self.core.now, self.timeout);
        let late = self.core.tasks.iter().position(|task| task.runnable_at.is_some_and(|since| now - since > timeout));
        if let Some(task) = late {
            let waited = (now - self.core.tasks[task].runnable_at.unwrap_or(now)) / 1_000_000;
            let place = match self.core.tasks[task].place {
                Place::Bpf => "no queue: the scheduler has inserted it nowhere",
                Place::Local(_) => "the local queue of its CPU",
                Place::Dsq(DSQ_GLOBAL) => "the global queue",
                Place::Dsq(_) => "a queue of the scheduler",
                Place::Nowhere => "no queue",
            };
            let (name, seconds, rest) = (self.core.named(task), waited / 1000, waited % 1000);
            let message = format!("{name} failed to run for {seconds}.{rest:03}s; it is on {place}");
            self.core.error(ExitKind::ErrorStall, message);
        }
    }

    /// The end: `exit` of the scheduler with the reason.
    pub(crate) fn end(&mut self) -> Option<Exit> {
        let exit = self.core.exit.take();
        let layout = self.core.layout.clone();
        if let Ok(info) = self.machine.memory.add("struct scx_exit_info", layout.exit_size, Write::None, true) {
            let kind = exit.as_ref().map_or(64, |exit| exit.kind as u32);
            for (field, value) in [(layout.exit_kind, u64::from(kind)), (layout.exit_code, 0)] {
                if let Some((offset, size)) = field {
                    self.machine.memory.set(info, offset, &value.to_le_bytes()[..size.min(8)]);
                }
            }
            self.operation("exit", &[Memory::address(info, 0)], Calling::Init);
        }
        exit
    }
}

/// Refuses an object that the kernel would refuse, because it lacks something that the object needs.
fn refuse(object: &Object, kernel: &Btf) -> Result<(), BpfError> {
    let lacks = check(object, kernel)?;
    let Some(first) = lacks.iter().find(|lack| lack.needed) else { return Ok(()) };
    let place = if first.place.is_empty() { String::new() } else { format!(", which {} uses", first.place) };
    let message = format!("the kernel refuses the scheduler: it lacks {} {}{place}", first.what, first.name);
    Err(BpfError::new(message).with_hint("schedlab scx check lists everything that a kernel lacks"))
}
