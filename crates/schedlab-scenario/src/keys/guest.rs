//! The keys of `[[guest]]`, and those that a variant overrides.

use super::{key, Section};

/// `[[guest]]`.
pub const GUEST: Section = Section {
    name: "[[guest]]",
    keys: &[
        key("name", "word", "", "its name in tables"),
        key("count", "1 to 1000", "1", "how many such guests; each has workloads of its own"),
        key("in", "guest", "", "the [[guest]] above that hosts it; without one it is a guest of the machine"),
        key("vcpus", "1 to 1024", "the topology's", "number of its CPUs; without a topology they share one cache"),
        key("topology", "table", "", "its CPUs, as presented to it: counts as in [topology]"),
        key(
            "platform",
            "x86-kvm, arm64-kvm, arm64-kvm-pvsched, powerpc-kvm, powervm, s390",
            "",
            "hypervisor and architecture",
        ),
        key("kernel", "as in a variant", "its host's", "its kernel"),
        key(
            "config",
            "distribution",
            "the kernel's, or Kconfig's defaults",
            "the distribution whose configuration it has",
        ),
        key("features", "table of booleans", "the kernel's", "its scheduler features, and VCPU_IS_PREEMPTED"),
        key("knobs", "table", "the kernel's", "its tunables"),
        key("hz", "100, 250, 300 or 1000", "the machine's", "its timer frequency"),
        key("preempt", "none, full or lazy", "the kernel's", "its preemption model"),
        key("cpus", "CPU list", "all", "CPUs of its host that its vCPUs may use"),
        key("pinned", "boolean", "false", "pin each vCPU to one of these CPUs, in their order"),
        key("cgroup", "path", "the root", "control group of the host for its vCPUs, declared by a [[cgroup]]"),
        key("nice", "-20 to 19", "0", "nice value of its vCPUs"),
        key("idle_hint", "off, vpa or hcall", "off", "how the guest learns which ceded vCPUs could run immediately"),
        key("paravirt_time_accounting", "boolean", "false", "leave stolen time out of its tasks' clocks"),
        key(
            "halt_poll_ns",
            "duration",
            "the platform's",
            "longest time for which the host polls for a halted vCPU; refused for powerpc-kvm",
        ),
        key(
            "haltpoll",
            "boolean",
            "false",
            "poll in the guest before a halt (cpuidle-haltpoll) instead of on the host",
        ),
        key("pv_spinlocks", "boolean", "true on x86-kvm", "halt in long waits for a spinlock of its kernel"),
        key(
            "pv_tlb_flush",
            "boolean",
            "true on x86-kvm",
            "vCPUs that do not run flush their TLBs when they are entered",
        ),
        key(
            "pv_sched_yield",
            "boolean",
            "true on x86-kvm from 5.3 on",
            "after an IPI to several vCPUs, yield to one that does not run",
        ),
        key("enable_apicv", "boolean", "false", "x86-kvm: interrupts are posted to a vCPU that runs, without an exit"),
        key("enable_ipiv", "boolean", "false", "x86-kvm: a vCPU sends an interrupt to another one without an exit"),
        key("events", "tables", "none", "when it is paused, resumed and killed"),
    ],
};

/// `variant.guests.NAME`.
pub const VARIANT_GUEST: Section = Section {
    name: "variant.guests.NAME",
    keys: &[
        key(
            "platform",
            "x86-kvm, arm64-kvm, arm64-kvm-pvsched, powerpc-kvm, powervm, s390",
            "the guest's",
            "hypervisor",
        ),
        key("kernel", "as in a variant", "the guest's", "its kernel"),
        key("config", "distribution", "the guest's", "the distribution whose configuration it has"),
        key("features", "table of booleans", "the guest's", "features, besides those of the guest"),
        key("knobs", "table", "the guest's", "tunables, besides those of the guest"),
        key("hz", "100, 250, 300 or 1000", "the guest's", "its timer frequency"),
        key("preempt", "none, full or lazy", "the guest's", "its preemption model"),
        key("cpus", "CPU list", "the guest's", "CPUs of the host that its vCPUs may use"),
        key("pinned", "boolean", "the guest's", "pin each vCPU to one of these CPUs"),
        key("cgroup", "path", "the guest's", "control group of the host for its vCPUs"),
        key("nice", "-20 to 19", "the guest's", "nice value of its vCPUs"),
        key("idle_hint", "off, vpa or hcall", "the guest's", "idle hints of the host"),
        key("paravirt_time_accounting", "boolean", "the guest's", "leave stolen time out of its tasks' clocks"),
        key("halt_poll_ns", "duration", "the guest's", "longest time for which the host polls"),
        key("haltpoll", "boolean", "the guest's", "poll in the guest before a halt"),
        key("pv_spinlocks", "boolean", "the guest's", "halt in long waits for a spinlock of its kernel"),
        key("pv_tlb_flush", "boolean", "the guest's", "vCPUs that do not run flush their TLBs when they are entered"),
        key(
            "pv_sched_yield",
            "boolean",
            "the guest's",
            "after an IPI to several vCPUs, yield to one that does not run",
        ),
        key("enable_apicv", "boolean", "the guest's", "interrupts are posted to a vCPU that runs"),
        key("enable_ipiv", "boolean", "the guest's", "a vCPU sends an interrupt without an exit"),
        key("events", "tables", "the guest's", "when it is paused, resumed and killed"),
    ],
};

/// `guest.events`.
pub const GUEST_EVENT: Section = Section {
    name: "guest.events",
    keys: &[
        key("at", "duration", "", "time since the start of the run"),
        key("action", "pause, resume or kill", "", "what is done to the guest"),
    ],
};
