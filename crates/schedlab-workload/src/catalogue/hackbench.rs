//! hackbench of rt-tests 2.4: time for groups of tasks to pass messages, a storm of wakeups.

use super::forked::Faults;
use super::messaging::Messaging;
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Settings};
use crate::{Better, Unit, Workload};

const TIME: MetricSpec = MetricSpec::headline(
    "time",
    Unit::Seconds,
    Better::Lower,
    "from the wakeup of all tasks until the last is reaped; creation is not part of it",
);

/// A receiver meets 14 faults after its last message, a sender 12 and one before its first (rt-tests 2.4 of Debian 12, `perf trace -F
/// all`): code of `exit` and of the destructors, and data of hackbench and three libraries that they write to.
const EXIT: Faults = Faults { map: 6, copy: 8 };

pub(super) const ENTRY: Entry = Entry {
    id: "hackbench",
    summary: "groups of senders and receivers pass messages through sockets or pipes (rt-tests 2.4)",
    options: &[
        OptionSpec::number("groups", 10, 1, 100_000, "groups of senders and receivers"),
        OptionSpec::number("fds", 20, 1, 1_000, "senders, and receivers, per group"),
        OptionSpec::number("loops", 100, 1, 1_000_000_000, "messages of each sender to each receiver"),
        OptionSpec::number("datasize", 100, 1, 65_536, "bytes of a message"),
        OptionSpec::flag("pipe", "pipes instead of sockets"),
        OptionSpec::flag("threads", "threads instead of processes"),
        OptionSpec::flag("process", "processes, the default"),
        OptionSpec::flag("inet", "loopback TCP: the receiving side's softirq runs in the sender's call"),
        OptionSpec::flag("fifo", "main runs as SCHED_FIFO of priority 1, its children do not"),
    ],
    metrics: &[TIME],
    ends: Ends::Always,
    build,
};

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    if settings.flag("threads") && settings.flag("process") {
        return Err(settings.error("process", "threads and process exclude each other").expected("one of the two"));
    }
    if settings.flag("pipe") && settings.flag("inet") {
        return Err(settings.error("inet", "pipe and inet exclude each other").expected("one of the two"));
    }
    let program = Messaging {
        comm: "hackbench",
        groups: settings.count("groups"),
        fds: settings.count("fds"),
        loops: settings.count("loops"),
        datasize: settings.count("datasize"),
        pipe: settings.flag("pipe"),
        inet: settings.flag("inet"),
        threads: settings.flag("threads"),
        fifo: settings.flag("fifo"),
        exit: EXIT,
        time: TIME,
    };
    program.build(settings, "groups")
}
