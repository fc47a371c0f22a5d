//! Programs on other machines, which send requests to a workload: they take no CPU time of the machine under test but
//! that of the interrupts and softirqs by which their requests arrive.

use schedlab_model::CpuMask;
use serde::{Deserialize, Serialize};

use crate::{Amount, ObjectId};

/// Clients on other machines.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Remote {
    /// What messages call them.
    pub name: String,
    /// The queue to which each request appends an entry: the time at which it reached the machine.
    pub queue: ObjectId,
    /// When they send.
    pub sends: Sends,
    /// The CPUs that take the interrupts of the network card, one of them at random for each request; `None`: all.
    #[serde(skip)]
    pub irq_cpus: Option<CpuMask>,
    /// The work of the softirq for a request, ns.
    pub softirq: Amount,
}

/// When clients send requests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Sends {
    /// An open loop: one request after each such time, whatever the server does.
    Every(Amount),
    /// A closed loop: each client thinks, sends a request and waits for the reply.
    Closed {
        /// How many clients.
        clients: u32,
        /// From a reply to the next request of the client.
        think: Amount,
        /// From a client to the machine, and the same back.
        network: Amount,
        /// The queue of replies. Any entry is the reply to the client that has waited longest.
        replies: ObjectId,
    },
}
