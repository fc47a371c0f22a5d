//! A record that owns its strings: binary readers decode into it and return a borrow of it.

use schedlab_model::{CpuId, Nanos, Pid};

use crate::names::Names;
use crate::record::{pids, Body, Record, Words};
use crate::text::body;
use crate::{Flags, Kind};

/// One record.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    pub time: Nanos,
    pub cpu: CpuId,
    /// The task that ran.
    pub pid: Pid,
    pub flags: Flags,
    pub what: What,
}

/// What a record says.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    /// An event of the model.
    Event { kind: Kind, comm: String, other_comm: String, prev_state: String },
    /// Events that the recorder lost: how many.
    Lost(u64),
    /// Any other event, or one given as text.
    Text { name: String, fields: String },
}

impl What {
    /// An impossible event: [`Kind::impossible`].
    pub fn impossible(&self) -> Option<String> {
        match self {
            What::Event { kind, .. } => kind.impossible(),
            What::Lost(_) | What::Text { .. } => None,
        }
    }

    /// An event about one task.
    pub fn one(kind: Kind, comm: String) -> What {
        What::Event { kind, comm, other_comm: String::new(), prev_state: String::new() }
    }
}

impl Item {
    /// Borrows the record; `names` has the name of the task that ran. The error says what is wrong with it.
    pub fn record<'a>(&'a self, names: &'a Names) -> Result<Record<'a>, String> {
        let comm = if self.pid == 0 { "<idle>" } else { names.get(self.pid) };
        let body = match &self.what {
            What::Event { kind, comm, other_comm, prev_state } => {
                Body::Event(*kind, Words { comm, other_comm, prev_state })
            }
            What::Lost(count) => Body::Lost(*count),
            What::Text { name, fields } => body::parse(name, fields)?,
        };
        Ok(Record { time: self.time, cpu: self.cpu, comm, pid: self.pid, flags: self.flags, body })
    }

    /// Stores the names of tasks that it contains.
    pub fn teach(&self, names: &mut Names) {
        if let What::Event { kind, comm, other_comm, .. } = &self.what {
            let [first, second] = pids(kind);
            for (pid, comm) in [(first, comm), (second, other_comm)] {
                if !comm.is_empty() {
                    names.set(pid, comm);
                }
            }
        }
    }
}
