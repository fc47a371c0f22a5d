//! A loaded scheduler, its tasks, and the calls of its operations.

use std::collections::BTreeMap;

use schedlab_bpf::{check, BpfError, Btf, Machine, Memory, Object, Write};
use schedlab_model::stream;

use crate::core::{Calling, Core, Cpu, Dsq, Exit, ExitKind, Place, Task, TaskNo};
use crate::core::{DSQ_GLOBAL, SLICE_DFL};
use crate::layout::Layout;

const DSP_DFL_MAX_BATCH: u64 = 32;
/// `SCX_WATCHDOG_MAX_TIMEOUT`, in ms.
const MAX_TIMEOUT_MS: u64 = 30_000;
pub(crate) const OPS_ENQ_LAST: u64 = 1 << 1;

/// A scheduler on a machine: the core's state, and the object that decides.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(crate) core: Core,
    pub(crate) machine: Machine,
    operations: BTreeMap<String, usize>,
    pub(crate) flags: u64,
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

    pub(crate) fn has(&self, operation: &str) -> bool {
        self.operations.contains_key(operation)
    }

    /// Calls an operation; `None`: the scheduler does not have it, or has ended.
    pub(crate) fn operation(&mut self, name: &str, args: &[u64], calling: Calling) -> Option<u64> {
        let function = *self.operations.get(name)?;
        if self.core.exit.is_some() {
            return None;
        }
        let before = std::mem::replace(&mut self.core.calling, calling);
        let done = self.machine.call(&mut self.core, function, args);
        self.core.calling = before;
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
        done.ok()
    }

    pub(crate) fn task_operation(&mut self, name: &str, task: TaskNo, more: &[u64]) {
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
