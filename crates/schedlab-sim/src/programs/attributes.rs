//! System calls by which a task changes its own attributes.

use schedlab_trace::Sink;
use schedlab_workload::Op;

use super::position::{Next, Step};
use super::running::Running;
use crate::kernel::{self, Attribute};

/// The effect of such a call.
pub fn change<S: Sink>(x: &mut Running<S>, op: Op) -> Next {
    let attribute = match op {
        Op::SetNice(nice) => Attribute::Nice(nice),
        Op::SetPolicy(policy) => Attribute::Policy(policy),
        Op::SetSlice(slice) => Attribute::Slice(slice),
        Op::SetCgroup(index) => {
            let path = x.workload().cgroups.get(index as usize).filter(|path| *path != "/");
            let number = x.programs.positions[x.task.index()].workload as usize;
            Attribute::Group(x.kernel.cgroups.of(path.map(String::as_str), number))
        }
        Op::SetAffinity(mask) => return set_affinity(x, mask),
        _ => return Next::Done,
    };
    kernel::change_attribute(x.run, x.machine, x.kernel, x.cpu, x.task, attribute);
    Next::Done
}

fn set_affinity<S: Sink>(x: &mut Running<S>, mask: u32) -> Next {
    let Some(mask) = x.workload().masks.get(mask as usize).copied() else { return Next::Done };
    if !kernel::set_affinity(x.run, x.kernel, x.cpu, x.task, mask) {
        return Next::Done;
    }
    let position = x.position();
    position.pc += 1;
    position.step = Step::Fetch;
    Next::Stop
}
