//! The current name of every task, for formats that repeat it in each event.

use schedlab_model::Pid;

/// The largest pid a kernel can hand out (PID_MAX_LIMIT).
const PID_MAX: usize = 4 << 20;

/// Names by pid.
#[derive(Clone, Default, Debug)]
pub struct Names {
    slot_of_pid: Vec<u32>,
    names: Vec<String>,
}

impl Names {
    /// Sets a name; true if it is new or has changed. The idle task and impossible pids have none.
    pub fn set(&mut self, pid: Pid, name: &str) -> bool {
        let Ok(index @ 1..=PID_MAX) = usize::try_from(pid) else { return false };
        if self.slot_of_pid.len() <= index {
            self.slot_of_pid.resize((index + 1).next_power_of_two(), 0);
        }
        let slot = self.slot_of_pid[index] as usize;
        if slot == 0 {
            self.names.push(name.to_owned());
            self.slot_of_pid[index] = self.names.len() as u32;
            return true;
        }
        let known = &mut self.names[slot - 1];
        let changed = known != name;
        if changed {
            name.clone_into(known);
        }
        changed
    }

    /// The name of a pid; the kernel's placeholder if the trace has no name for it.
    #[must_use]
    pub fn get(&self, pid: Pid) -> &str {
        let slot = usize::try_from(pid).ok().and_then(|index| self.slot_of_pid.get(index)).copied().unwrap_or(0);
        (slot as usize).checked_sub(1).map_or("<...>", |index| &self.names[index])
    }
}
