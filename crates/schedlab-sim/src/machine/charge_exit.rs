//! Which events make a guest's CPU leave the guest, and what that costs.

use schedlab_model::{CpuId, Nanos};
use schedlab_spec::PlatformCosts;

use super::cost::{CostTable, CostTables, Dice};
use super::exits::Exit;
use super::state::Machine;

impl Machine {
    /// An inter-processor interrupt is sent.
    #[inline(always)]
    pub(super) fn exit_to_send(&mut self, from: CpuId) {
        if self.exits.is_some() {
            self.exit_if(from, Exit::Ipi, |platform| platform.ipi_send_exits);
        }
    }

    /// An inter-processor interrupt arrives at a CPU that executes.
    #[inline(always)]
    pub(super) fn exit_to_receive(&mut self, cpu: CpuId) {
        if self.exits.is_some() {
            self.exit_if(cpu, Exit::Ipi, |platform| platform.ipi_receive_exits);
        }
    }

    /// A timer expires on a CPU that executes.
    #[inline(always)]
    pub(super) fn exit_for_timer(&mut self, cpu: CpuId) {
        if self.exits.is_some() {
            self.exit_if(cpu, Exit::Timer, |platform| platform.timer_expiry_exits);
        }
    }

    /// The clock event device is programmed.
    #[inline(always)]
    pub fn exit_to_program(&mut self, cpu: CpuId) {
        if self.exits.is_some() {
            self.exit_if(cpu, Exit::Timer, |platform| platform.timer_program_exits);
        }
    }

    /// The clock event device is programmed by a CPU on the way into an idle state.
    #[inline(always)]
    pub fn exit_to_program_before_idle(&mut self, cpu: CpuId) {
        if self.exits.is_some() {
            let cost = self.exit_cost(cpu, Exit::Timer, |platform| platform.timer_program_exits);
            self.cpus[cpu.index()].charge_own(cost.unwrap_or(0));
        }
    }

    #[inline(always)]
    fn exit_if(&mut self, cpu: CpuId, exit: Exit, exits: fn(&PlatformCosts) -> bool) {
        if let Some(cost) = self.exit_cost(cpu, exit, exits) {
            self.cpus[cpu.index()].pending += cost;
        }
    }

    /// Counts an exit and draws its cost, in ns; `None`: the platform needs no exit for this.
    #[cold]
    #[inline(never)]
    fn exit_cost(&mut self, cpu: CpuId, exit: Exit, exits: fn(&PlatformCosts) -> bool) -> Option<Nanos> {
        let found = self.exits.as_mut().filter(|found| exits(&found.platform))?;
        found.count(exit);
        Some(self.costs.vm_exit.draw_any(&mut self.cpus[cpu.index()].dice))
    }

    /// A search has asked the host so often; each is a hypercall, and `vm_exit` is the time of an empty one.
    #[cold]
    pub fn charge_hypercalls(&mut self, cpu: CpuId, hypercalls: u32) {
        let Some(exits) = &mut self.exits else { return };
        let c = &mut self.cpus[cpu.index()];
        for _ in 0..hypercalls {
            exits.count(Exit::Hcall);
            c.pending += self.costs.vm_exit.draw_any(&mut c.dice);
        }
    }

    /// The time of an exit that the hypervisor charges to its own CPU.
    pub fn draw_exit(&mut self, cpu: CpuId) -> Nanos {
        let dice = &mut self.cpus[cpu.index()].dice;
        hosted_exit(&self.costs, self.exits.is_some()).draw_any(dice)
    }

    /// Half of such an exit: the entry of the guest, by a thread.
    pub fn draw_entry(&self, dice: &mut Dice) -> Nanos {
        hosted_exit(&self.costs, self.exits.is_some()).draw_any(dice) / 2
    }
}

/// An exit of a guest of this machine. If the machine is that of a guest itself, it is one of a guest in a guest.
fn hosted_exit(costs: &CostTables, is_guest: bool) -> &CostTable {
    if is_guest {
        &costs.vm_exit_nested
    } else {
        &costs.vm_exit
    }
}
