//! The `[costs]` of a machine: the cost of every action as a distribution with its source.

use schedlab_model::{Nanos, SEC};
use schedlab_spec::Costs;
use schedlab_workload::Dist;

use super::sources::Sources;
use crate::dist::constant_or_quantiles_up_to;
use crate::error::Result;
use crate::keys::{COST, COSTS};
use crate::value::{Table, Value};

/// The maximum cost. The engine samples costs from tables of 32-bit ns, and no kernel path takes a second.
pub(crate) const DEAREST: Nanos = SEC;

const DISTANCES: [&str; 5] = ["same", "smt", "llc", "node", "remote"];

/// Reads the costs. Missing costs are those of the base.
pub(super) fn read(machine: &Table, base: Option<&Costs>, sources: &mut Sources) -> Result<Costs> {
    let table = machine.get("costs").map(|value| value.table("a table")?.only(&COSTS)).transpose()?;
    let mut reader = Reader { machine, table, base, sources };
    Ok(Costs {
        syscall: reader.one("syscall", |c| &c.syscall)?,
        schedule: reader.part("schedule", |c| &c.schedule)?,
        switch_thread: reader.one("switch-thread", |c| &c.switch_thread)?,
        switch_process: reader.one("switch-process", |c| &c.switch_process)?,
        wakeup: reader.one("wakeup", |c| &c.wakeup)?,
        wakeup_clock: reader.part("wakeup-clock", |c| &c.wakeup_clock)?,
        scan_cpu: reader.by_distance("scan-cpu", |c| &c.scan_cpu)?,
        ipi: reader.by_distance("ipi", |c| &c.ipi)?,
        ipi_send: reader.part("ipi-send", |c| &c.ipi_send)?,
        irq_entry: reader.part("irq-entry", |c| &c.irq_entry)?,
        irq: reader.one("irq", |c| &c.irq)?,
        tick: reader.one("tick", |c| &c.tick)?,
        timer_program: reader.one("timer-program", |c| &c.timer_program)?,
        timer_resume: reader.part("timer-resume", |c| &c.timer_resume)?,
        pipe_wait: reader.like("pipe-wait", "pipe-read", |c| &c.pipe_wait)?,
        pipe_read: reader.one("pipe-read", |c| &c.pipe_read)?,
        pipe_write: reader.one("pipe-write", |c| &c.pipe_write)?,
        pipe_wake: reader.part("pipe-wake", |c| &c.pipe_wake)?,
        pipe_resume: reader.part("pipe-resume", |c| &c.pipe_resume)?,
        socket_wait: reader.like("socket-wait", "socket-receive", |c| &c.socket_wait)?,
        socket_receive: reader.one("socket-receive", |c| &c.socket_receive)?,
        socket_send: reader.one("socket-send", |c| &c.socket_send)?,
        socket_wake: reader.part("socket-wake", |c| &c.socket_wake)?,
        socket_resume: reader.part("socket-resume", |c| &c.socket_resume)?,
        copy_kib: reader.one("copy-kib", |c| &c.copy_kib)?,
        futex_wait: reader.like("futex-wait", "futex-wake", |c| &c.futex_wait)?,
        futex_wake: reader.one("futex-wake", |c| &c.futex_wake)?,
        futex_resume: reader.part("futex-resume", |c| &c.futex_resume)?,
        fork_process: reader.one("fork-process", |c| &c.fork_process)?,
        fork_thread: reader.one("fork-thread", |c| &c.fork_thread)?,
        start_process: reader.part("start-process", |c| &c.start_process)?,
        start_thread: reader.part("start-thread", |c| &c.start_thread)?,
        exec: reader.one("exec", |c| &c.exec)?,
        exit_process: reader.one("exit-process", |c| &c.exit_process)?,
        exit_thread: reader.one("exit-thread", |c| &c.exit_thread)?,
        reap_wait: reader.part("reap-wait", |c| &c.reap_wait)?,
        reap: reader.part("reap", |c| &c.reap)?,
        balance_pass: reader.one("balance-pass", |c| &c.balance_pass)?,
        balance_cpu: reader.one("balance-cpu", |c| &c.balance_cpu)?,
        fault: reader.one("fault", |c| &c.fault)?,
        clear_kib: reader.one("clear-kib", |c| &c.clear_kib)?,
        read_kib: reader.one("read-kib", |c| &c.read_kib)?,
        mmap: reader.part("mmap", |c| &c.mmap)?,
        munmap: reader.part("munmap", |c| &c.munmap)?,
        zap_page: reader.part("zap-page", |c| &c.zap_page)?,
        unmap_page: reader.one("unmap-page", |c| &c.unmap_page)?,
        copy_page_table: reader.one("copy-page-table", |c| &c.copy_page_table)?,
        user_op: reader.one("user-op", |c| &c.user_op)?,
        vm_exit: reader.part("vm-exit", |c| &c.vm_exit)?,
        vm_exit_nested: reader.part("vm-exit-nested", |c| &c.vm_exit_nested)?,
        idle_hint: reader.part("idle-hint", |c| &c.idle_hint)?,
        tlb_flush: reader.part("tlb-flush", |c| &c.tlb_flush)?,
        cpu_relax: reader.part("cpu-relax", |c| &c.cpu_relax)?,
        ple_window: reader.part("ple-window", |c| &c.ple_window)?,
        line_transfer: reader.part_by_distance("line-transfer", |c| &c.line_transfer)?,
    })
}

struct Reader<'t, 'a> {
    machine: &'t Table<'a>,
    table: Option<Table<'a>>,
    base: Option<&'t Costs>,
    sources: &'t mut Sources,
}

impl<'a> Reader<'_, 'a> {
    fn one(&mut self, key: &str, field: fn(&Costs) -> &Dist) -> Result<Dist> {
        match (self.cost(key)?, self.base) {
            (Some(table), _) => {
                let table = table.only_these(&COST.names()[..4], "a cost")?;
                self.sources.read(key, &table)?;
                constant_or_quantiles_up_to(DEAREST, &table)
            }
            (None, Some(base)) => Ok(field(base).clone()),
            (None, None) => Err(self.missing(key)),
        }
    }

    /// A cost that may be missing because it is part of another cost; it is 0 then.
    fn part(&mut self, key: &str, field: fn(&Costs) -> &Dist) -> Result<Dist> {
        match (self.cost(key)?, self.base) {
            (None, None) => Ok(Dist::Constant(0)),
            _ => self.one(key, field),
        }
    }

    /// A cost whose default is that of another action.
    fn like(&mut self, key: &str, other: &str, field: fn(&Costs) -> &Dist) -> Result<Dist> {
        let own = self.cost(key)?.is_some() || self.cost(other)?.is_none() && self.base.is_some();
        self.one(if own { key } else { other }, field)
    }

    fn by_distance(&mut self, key: &str, field: fn(&Costs) -> &[Dist; 5]) -> Result<[Dist; 5]> {
        let table = match (self.cost(key)?, self.base) {
            (Some(table), _) => table,
            (None, Some(base)) => return Ok(field(base).clone()),
            (None, None) => return Err(self.missing(key)),
        };
        let table = table.only_these(&COST.names()[2..], "a cost by distance")?;
        self.sources.read(key, &table)?;
        let mut costs = DISTANCES.map(|_| Dist::Constant(0));
        for (cost, distance) in costs.iter_mut().zip(DISTANCES) {
            let value = table.require(distance, "constant or quantiles")?;
            let table = value.table("constant or quantiles")?.only_these(&COST.names()[..2], "a cost")?;
            *cost = constant_or_quantiles_up_to(DEAREST, &table)?;
        }
        Ok(costs)
    }

    /// A cost by distance that may be missing; it is 0 then.
    fn part_by_distance(&mut self, key: &str, field: fn(&Costs) -> &[Dist; 5]) -> Result<[Dist; 5]> {
        match (self.cost(key)?, self.base) {
            (None, None) => Ok(DISTANCES.map(|_| Dist::Constant(0))),
            _ => self.by_distance(key, field),
        }
    }

    fn cost(&self, key: &str) -> Result<Option<Table<'a>>> {
        let value: Option<Value> = self.table.as_ref().and_then(|table| table.get(key));
        value.map(|value| value.table("a table with constant or quantiles, and source")).transpose()
    }

    fn missing(&self, key: &str) -> Box<crate::ScenarioError> {
        let message = format!("the key \"costs.{key}\" is missing");
        let table = self.table.as_ref().unwrap_or(self.machine);
        table.error(message).expected("every cost, or a base that provides them").hint("add base = \"laptop-8\"")
    }
}
