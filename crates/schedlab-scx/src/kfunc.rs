//! The functions of the kernel that a scheduler calls, by name; where a function may be called from is checked.

use schedlab_bpf::{Kernel, Memory, Write};

use crate::core::{Buffered, Calling, Core, Dsq, ExitKind, ENQ_PRIQ};

const EEXIST: i64 = -17;
const EINVAL: i64 = -22;
const ENOENT: i64 = -2;
const EBUSY: i64 = -16;

impl Kernel for Core {
    fn kfunc(&mut self, memory: &mut Memory, name: &str, args: [u64; 5]) -> Result<u64, String> {
        let [a, b, c, d, e] = args;
        let done = self.scx(memory, name, args)?;
        if let Some(value) = done {
            return Ok(value);
        }
        Ok(match name {
            "bpf_rcu_read_lock" | "bpf_rcu_read_unlock" | "bpf_task_release" => 0,
            "bpf_task_acquire" => a,
            "bpf_task_from_pid" => {
                let found = self.tasks.iter().find(|task| task.pid == a as i32);
                found.map_or(0, |task| task.address())
            }
            "bpf_iter_num_new" => {
                // The first 8 bytes of the iterator: the number before the next, and the end.
                let (from, to) = (b as u32 as i32, c as u32 as i32);
                let valid = from <= to;
                let state = if valid { (from.wrapping_sub(1), to) } else { (0, 0) };
                memory.store(a, 4, state.0 as u32 as u64)?;
                memory.store(a.wrapping_add(4), 4, state.1 as u32 as u64)?;
                if valid {
                    0
                } else {
                    EINVAL as u64
                }
            }
            "bpf_iter_num_next" => {
                let current = memory.load(a, 4)? as u32 as i32;
                let end = memory.load(a.wrapping_add(4), 4)? as u32 as i32;
                let next = current.wrapping_add(1);
                if next >= end {
                    memory.store(a, 8, 0)?;
                    return Ok(0);
                }
                memory.store(a, 4, next as u32 as u64)?;
                a
            }
            "bpf_iter_num_destroy" => 0,
            "bpf_cpumask_create" => {
                let created = memory.add("a cpumask of the scheduler", 1024, Write::None, true);
                Memory::address(created.map_err(|error| error.message)?, 0)
            }
            "bpf_cpumask_acquire" => a,
            "bpf_cpumask_release" => 0,
            "bpf_cpumask_set_cpu" => set_mask(memory, b, |mask| mask | bit(a))?,
            "bpf_cpumask_clear_cpu" => set_mask(memory, b, |mask| mask & !bit(a))?,
            "bpf_cpumask_setall" => {
                let every = self.every_cpu();
                set_mask(memory, a, |_| every)?
            }
            "bpf_cpumask_clear" => set_mask(memory, a, |_| 0)?,
            "bpf_cpumask_copy" => {
                let from = memory.load(b, 8)?;
                set_mask(memory, a, |_| from)?
            }
            "bpf_cpumask_and" | "bpf_cpumask_or" | "bpf_cpumask_xor" => {
                let (left, right) = (memory.load(b, 8)?, memory.load(c, 8)?);
                let mask = match name {
                    "bpf_cpumask_and" => left & right,
                    "bpf_cpumask_or" => left | right,
                    _ => left ^ right,
                };
                set_mask(memory, a, |_| mask)?;
                u64::from(mask != 0)
            }
            "bpf_cpumask_test_cpu" => u64::from(memory.load(b, 8)? & bit(a) != 0),
            "bpf_cpumask_first" => u64::from(memory.load(a, 8)?.trailing_zeros()),
            "bpf_cpumask_weight" => u64::from(memory.load(a, 8)?.count_ones()),
            "bpf_cpumask_empty" => u64::from(memory.load(a, 8)? == 0),
            "bpf_cpumask_intersects" => u64::from(memory.load(a, 8)? & memory.load(b, 8)? != 0),
            "bpf_cpumask_subset" => u64::from(memory.load(a, 8)? & !memory.load(b, 8)? == 0),
            _ => {
                let _ = (c, d, e);
                return Err(format!("the kernel's function {name} is not modelled"));
            }
        })
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn cpu(&self) -> usize {
        self.this_cpu
    }

    fn current(&self) -> u64 {
        self.cpus[self.this_cpu].curr.map_or(0, |task| self.tasks[task].address())
    }

    fn random(&mut self) -> u32 {
        self.random.next_u64() as u32
    }
}

impl Core {
    /// The functions of sched_ext; `None`: the name is none of them.
    fn scx(&mut self, memory: &mut Memory, name: &str, args: [u64; 5]) -> Result<Option<u64>, String> {
        let [a, b, c, d, e] = args;
        Ok(Some(match name {
            "scx_bpf_create_dsq" => self.create_dsq(name, a)?,
            "scx_bpf_destroy_dsq" => {
                self.destroy_dsq(a);
                0
            }
            "scx_bpf_select_cpu_dfl" => {
                if !matches!(self.calling, Calling::Direct { .. }) {
                    return Err(not_here(name));
                }
                let (task, prev) = (self.task_at(a)?, self.cpu_at(b)?);
                let (cpu, found) = self.select_cpu_dfl(task, prev, c);
                memory.store(d, 1, u64::from(found))?;
                cpu as u64
            }
            "scx_bpf_dsq_insert" | "scx_bpf_dispatch" => self.dsq_insert(memory, name, a, b, c, d)?,
            "scx_bpf_dsq_insert_vtime" | "scx_bpf_dispatch_vtime" => {
                let task = self.task_at(a)?;
                self.write(memory, task, self.layout.vtime, d);
                self.dsq_insert(memory, name, a, b, c, e | ENQ_PRIQ)?
            }
            "scx_bpf_dsq_move_to_local" | "scx_bpf_consume" => {
                let Calling::Dispatch { cpu } = self.calling else { return Err(not_here(name)) };
                self.flush_dispatch_buf(memory, cpu);
                if !self.dsqs.contains_key(&a) {
                    self.error(ExitKind::Error, format!("invalid DSQ ID {a:#018x}"));
                    return Ok(Some(0));
                }
                u64::from(self.consume_dispatch_q(memory, cpu, a))
            }
            "scx_bpf_dispatch_nr_slots" => self.max_batch.saturating_sub(self.buffer.len()) as u64,
            "scx_bpf_dispatch_cancel" => {
                self.buffer.pop();
                0
            }
            "scx_bpf_kick_cpu" => {
                let cpu = self.cpu_at(a)?;
                self.kicks.push((cpu, b));
                0
            }
            "scx_bpf_dsq_nr_queued" => self.nr_queued(a)? as u64,
            "scx_bpf_task_set_slice" => {
                let task = self.task_at(a)?;
                self.set_slice(memory, task, b);
                1
            }
            "scx_bpf_task_set_dsq_vtime" => {
                let task = self.task_at(a)?;
                self.write(memory, task, self.layout.vtime, b);
                1
            }
            "scx_bpf_task_running" => {
                let task = self.task_at(a)?;
                u64::from(self.cpus[self.tasks[task].cpu].curr == Some(task))
            }
            "scx_bpf_task_cpu" => {
                let task = self.task_at(a)?;
                self.tasks[task].cpu as u64
            }
            "scx_bpf_now" => self.now,
            "scx_bpf_nr_cpu_ids" => self.cpus.len() as u64,
            "scx_bpf_get_possible_cpumask" | "scx_bpf_get_online_cpumask" => self.mask(memory, "online", |_| true),
            "scx_bpf_get_idle_cpumask" => self.mask(memory, "idle", |cpu| cpu.idle),
            "scx_bpf_get_idle_smtmask" => self.mask(memory, "smt", |cpu| cpu.idle),
            "scx_bpf_put_cpumask" | "scx_bpf_put_idle_cpumask" => 0,
            "scx_bpf_test_and_clear_cpu_idle" => {
                let cpu = self.cpu_at(a)?;
                u64::from(self.test_and_clear_cpu_idle(cpu))
            }
            "scx_bpf_pick_idle_cpu" => {
                let allowed = memory.load(a, 8)?;
                self.pick_idle_cpu(allowed).map_or(EBUSY as u64, |cpu| cpu as u64)
            }
            "scx_bpf_pick_any_cpu" => {
                let allowed = memory.load(a, 8)? & self.every_cpu();
                let any = (allowed != 0).then(|| allowed.trailing_zeros() as usize);
                self.pick_idle_cpu(allowed).or(any).map_or(EBUSY as u64, |cpu| cpu as u64)
            }
            "scx_bpf_cpuperf_cap" | "scx_bpf_cpuperf_cur" => 1024,
            "scx_bpf_cpuperf_set" | "scx_bpf_dump_bstr" => 0,
            "scx_bpf_error_bstr" => {
                let message = formatted(memory, a, b, c)?;
                self.error(ExitKind::ErrorBpf, message);
                0
            }
            "scx_bpf_exit_bstr" => {
                let message = formatted(memory, b, c, d)?;
                self.error(ExitKind::UnregBpf, message);
                0
            }
            _ => return Ok(None),
        }))
    }

    pub fn every_cpu(&self) -> u64 {
        u64::MAX >> (64 - self.cpus.len())
    }

    fn mask(&mut self, memory: &mut Memory, name: &'static str, of: impl Fn(&crate::core::Cpu) -> bool) -> u64 {
        let bits = self.cpus.iter().enumerate().filter(|(_, cpu)| of(cpu)).fold(0u64, |bits, (n, _)| bits | 1 << n);
        let Some(region) = self.masks.get(name) else { return 0 };
        memory.set(*region, 0, &bits.to_le_bytes());
        Memory::address(*region, 0)
    }

    fn create_dsq(&mut self, name: &str, dsq: u64) -> Result<u64, String> {
        if self.calling != Calling::Init {
            return Err(not_here(name));
        }
        if dsq >> 63 != 0 {
            return Ok(EINVAL as u64);
        }
        if self.dsqs.contains_key(&dsq) {
            return Ok(EEXIST as u64);
        }
        self.dsqs.insert(dsq, Dsq::default());
        Ok(0)
    }

    fn destroy_dsq(&mut self, dsq: u64) {
        match self.dsqs.get(&dsq) {
            Some(queue) if !queue.tasks.is_empty() => {
                let nr = queue.tasks.len();
                self.error(ExitKind::Error, format!("attempting to destroy in-use dsq {dsq:#018x} (nr={nr})"));
            }
            Some(_) if dsq >> 63 == 0 => {
                self.dsqs.remove(&dsq);
            }
            _ => {}
        }
    }

    fn nr_queued(&self, dsq: u64) -> Result<i64, String> {
        use crate::core::{DSQ_LOCAL, DSQ_LOCAL_ON};
        if dsq == DSQ_LOCAL {
            return Ok(self.cpus[self.this_cpu].local.tasks.len() as i64);
        }
        if dsq & DSQ_LOCAL_ON == DSQ_LOCAL_ON {
            let cpu = self.cpu_at(dsq & u64::from(u32::MAX))?;
            return Ok(self.cpus[cpu].local.tasks.len() as i64);
        }
        Ok(self.dsqs.get(&dsq).map_or(ENOENT, |queue| queue.tasks.len() as i64))
    }

    /// `scx_dsq_insert_preamble` and `scx_dsq_insert_commit`.
    fn dsq_insert(
        &mut self,
        memory: &mut Memory,
        name: &str,
        p: u64,
        dsq: u64,
        slice: u64,
        flags: u64,
    ) -> Result<u64, String> {
        let task = self.task_at(p)?;
        let slice = if slice == 0 { self.slice(memory, task).max(1) } else { slice };
        match self.calling.clone() {
            Calling::Direct { task: direct, done } => {
                if done {
                    let message = format!("{} already direct-dispatched", self.named(task));
                    self.error(ExitKind::Error, message);
                    return Ok(0);
                }
                if direct != task {
                    let (ours, other) = (self.named(direct), self.named(task));
                    let message = format!("scheduling for {ours} but trying to direct-dispatch {other}");
                    self.error(ExitKind::Error, message);
                    return Ok(0);
                }
                self.set_slice(memory, task, slice);
                self.tasks[task].direct = Some((dsq, flags));
                self.calling = Calling::Direct { task, done: true };
            }
            Calling::Dispatch { .. } => {
                if self.buffer.len() >= self.max_batch {
                    self.error(ExitKind::Error, "dispatch buffer overflow".to_owned());
                    return Ok(0);
                }
                self.set_slice(memory, task, slice);
                let qseq = self.tasks[task].qseq;
                self.buffer.push(Buffered { task, qseq, dsq, flags });
            }
            _ => return Err(not_here(name)),
        }
        Ok(1)
    }
}

/// The bit of a CPU; none beyond 64.
fn bit(cpu: u64) -> u64 {
    1u64.checked_shl(cpu as u32).unwrap_or(0)
}

/// Changes a cpumask of the scheduler, which the program itself cannot write.
fn set_mask(memory: &mut Memory, address: u64, change: impl FnOnce(u64) -> u64) -> Result<u64, String> {
    let mask = change(memory.load(address, 8)?);
    if let Some((region, offset)) = memory.region_of(address) {
        memory.set(region, offset, &mask.to_le_bytes());
    }
    Ok(0)
}

fn not_here(name: &str) -> String {
    format!("{name} may not be called from this operation")
}

/// The message of `scx_bpf_error` and `scx_bpf_exit`: `%d`, `%u`, `%x`, `%s` with their lengths; other conversions stay
/// as they are.
fn formatted(memory: &Memory, format: u64, data: u64, size: u64) -> Result<String, String> {
    let text = string(memory, format);
    let mut arguments = (0..size / 8).map(|n| memory.load(data + n * 8, 8));
    let (mut out, mut rest) = (String::new(), text.chars().peekable());
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut conversion = String::new();
        while let Some(c) = rest.next_if(|c| "0123456789lhz.#-".contains(*c)) {
            conversion.push(c);
        }
        let kind = rest.next().unwrap_or('%');
        let wide = conversion.contains('l');
        match kind {
            '%' => out.push('%'),
            'd' | 'i' => match (arguments.next().transpose()?, wide) {
                (Some(value), true) => out.push_str(&(value as i64).to_string()),
                (Some(value), false) => out.push_str(&(value as i32).to_string()),
                (None, _) => out.push_str("%d"),
            },
            'u' => out.push_str(&arguments.next().transpose()?.unwrap_or(0).to_string()),
            'x' => out.push_str(&format!("{:x}", arguments.next().transpose()?.unwrap_or(0))),
            's' => out.push_str(&string(memory, arguments.next().transpose()?.unwrap_or(0))),
            other => out.push_str(&format!("%{conversion}{other}")),
        }
    }
    Ok(out)
}

/// A string of up to 1,024 bytes.
fn string(memory: &Memory, address: u64) -> String {
    let bytes = (0..1024).map_while(|n| memory.load(address.wrapping_add(n), 1).ok().filter(|byte| *byte != 0));
    bytes.map(|byte| char::from(byte as u8)).collect()
}
