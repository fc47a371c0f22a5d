//! Clients on other machines as tasks of the machine under test, for kernels on which nothing can be sent from outside.

use crate::build::Code;
use crate::remote::Sends;
use crate::{Amount, ObjectId, ObjectSpec, Op, TaskSpec, TimerMode, Workload};

impl Workload {
    /// The same with a task of the machine in place of each client, for kernels on which nothing can be sent from
    /// outside. Softirq work is left out, and the tasks compete with the workload for CPUs.
    #[must_use]
    pub fn with_local_clients(mut self) -> Workload {
        for remote in std::mem::take(&mut self.remotes) {
            let (code, count) = match remote.sends {
                Sends::Every(period) => (self.open(remote.queue, period), 1),
                Sends::Closed { clients, think, network, replies } => {
                    (closed(remote.queue, think, network, replies), clients)
                }
            };
            self.programs.push(code.finish(&remote.name));
            let program = self.programs.len() as u32 - 1;
            let process = 1 + self.tasks.iter().map(|task| task.process).max().unwrap_or(0);
            // The real clients are other machines: their timers have no slack.
            let task = TaskSpec { name: remote.name, program, count, process, timer_slack: 1, ..TaskSpec::default() };
            self.tasks.push(task);
        }
        self
    }

    fn open(&mut self, queue: ObjectId, period: Amount) -> Code {
        self.objects.push(ObjectSpec::Timer);
        self.object_names.push("arrivals".to_owned());
        let timer = self.objects.len() as ObjectId - 1;
        let mut code = Code::default();
        code.forever(|code| {
            code.op(Op::Timer { object: timer, period, mode: TimerMode::Absolute });
            code.op(Op::TimerDue { object: timer, into: 0 });
            code.op(Op::Send { object: queue, from: 0 });
        });
        code
    }
}

fn closed(queue: ObjectId, think: Amount, network: Amount, replies: ObjectId) -> Code {
    let mut code = Code::default();
    code.forever(|code| {
        code.op(Op::Sleep(think));
        code.op(Op::Sleep(network));
        code.op(Op::Clock(0));
        code.op(Op::Send { object: queue, from: 0 });
        code.op(Op::Receive { object: replies, into: 1 });
        code.op(Op::Sleep(network));
    });
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, Remote};

    #[test]
    fn a_local_client_sends_when_the_remote_one_would() {
        let remote = |sends| Remote { name: "c".into(), queue: 0, sends, irq_cpus: None, softirq: Amount::Fixed(0) };
        let fixed = Amount::Fixed;
        let cases = [
            (Sends::Every(fixed(5)), 1, 4),
            (Sends::Closed { clients: 3, think: fixed(5), network: fixed(1), replies: 1 }, 3, 7),
        ];
        for (sends, count, ops) in cases {
            let workload = Workload {
                objects: vec![ObjectSpec::Queue; 2],
                remotes: vec![remote(sends.clone())],
                ..Workload::default()
            };
            let local = workload.with_local_clients();
            let Program { ops: found, .. } = &local.programs[0];
            assert_eq!((local.tasks[0].count, found.len(), local.remotes.len()), (count, ops, 0), "{sends:?}");
        }
    }
}
