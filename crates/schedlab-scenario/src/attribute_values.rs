//! Values of scheduling attributes: nice values, slices, policies and CPU lists.

use schedlab_model::{CpuMask, Nanos, MSEC, USEC};
use schedlab_workload::{Deadline, Policy};

use crate::error::Result;
use crate::units;
use crate::value::Value;

/// Reads a nice value.
pub(crate) fn nice(value: &Value) -> Result<i8> {
    Ok(value.integer(-20..=19)? as i8)
}

/// Reads a slice within the range that `__setscheduler_params` accepts.
pub(crate) fn slice(value: &Value) -> Result<Nanos> {
    value.duration(100 * USEC..=100 * MSEC)
}

/// Reads a policy. Real-time policies include the priority, as in `fifo:50`, and the deadline policy its parameters.
pub(crate) fn policy(value: &Value) -> Result<Policy> {
    const FAIR: &[(&str, Policy)] = &[("normal", Policy::Normal), ("batch", Policy::Batch), ("idle", Policy::Idle)];
    let text = value.as_string().unwrap_or_default();
    let (name, priority) = text.split_once(':').unwrap_or((text, ""));
    match name {
        "other" if text == "other" => Ok(Policy::Normal),
        "deadline" => deadline(value, priority).map(Policy::Deadline),
        "fifo" | "rr" => match priority.parse::<u8>() {
            Ok(priority @ 1..=99) if name == "fifo" => Ok(Policy::Fifo(priority)),
            Ok(priority @ 1..=99) => Ok(Policy::RoundRobin(priority)),
            _ if priority.is_empty() => {
                let hint = format!("write \"{name}:50\" for priority 50; 99 is the highest");
                Err(value.refuse("a real-time policy needs a priority").expected(POLICY).hint(hint))
            }
            _ => Err(value.refuse("not a real-time priority").expected(POLICY)),
        },
        _ => value.choice(FAIR),
    }
}

/// Reads `RUNTIME/PERIOD` or `RUNTIME/DEADLINE/PERIOD`; what the kernel's `__checkparam_dl` refuses is refused.
fn deadline(value: &Value, text: &str) -> Result<Deadline> {
    let form = || "deadline:RUNTIME/PERIOD or deadline:RUNTIME/DEADLINE/PERIOD, such as deadline:5ms/30ms".to_owned();
    let mut times = Vec::new();
    if text.is_empty() {
        return Err(value.refuse("a deadline task needs a runtime and a period").expected(form()));
    }
    if text.split('/').any(|flag| ["reclaim", "overrun"].contains(&flag)) {
        let hint = "SCHED_FLAG_RECLAIM (GRUB) and SCHED_FLAG_DL_OVERRUN are not modelled";
        return Err(value.refuse("flags of SCHED_DEADLINE are not simulated").expected(form()).hint(hint));
    }
    for part in text.split('/') {
        let time = units::duration(part);
        times.push(time.map_err(|(why, hint)| value.refuse(&why).expected(form()).hint(hint))?);
    }
    let deadline = match times[..] {
        [runtime, period] => Deadline { runtime, deadline: period, period },
        [runtime, deadline, period] => Deadline { runtime, deadline, period },
        _ => return Err(value.refuse("a deadline task needs a runtime and a period").expected(form())),
    };
    deadline.check().map_err(|(what, hint)| value.refuse(&what).expected(hint))?;
    Ok(deadline)
}

/// The form of a policy, for messages.
const POLICY: &str = "normal, batch, idle, fifo:N or rr:N with N from 1 to 99, or deadline:RUNTIME/PERIOD";

/// Reads a CPU list within the machine.
pub(crate) fn cpus(value: &Value, nr_cpus: usize) -> Result<CpuMask> {
    const FORM: &str = "a CPU list such as \"0-3,8\"";
    let text = value.string(FORM)?;
    let mask = CpuMask::from_list(text).filter(|mask| !mask.is_empty());
    let mask = mask.ok_or_else(|| value.refuse("not a CPU list").expected(FORM))?;
    if mask.without(&CpuMask::first(nr_cpus)).is_empty() {
        return Ok(mask);
    }
    Err(value.refuse(&format!("the machine has CPUs 0 to {}", nr_cpus - 1)))
}
