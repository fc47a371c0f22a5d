//! hackbench of rt-tests 2.4: time for groups of tasks to pass messages, a storm of wakeups.

use super::about::{parameter, About, Quantity};
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

/// A receiver meets 14 faults after its last message, a sender 12 and one before its first (rt-tests 2.4 of Debian 12,
/// `perf trace -F all`): code of `exit` and of the destructors, and data of hackbench and three libraries that they
/// write to.
const EXIT: Faults = Faults { map: 6, copy: 8 };

pub(super) const ENTRY: Entry = Entry {
    id: "hackbench",
    summary: "rt-tests hackbench: groups pass messages",
    about: About {
        structure: &[
            "Main creates `groups` groups of `fds` receivers and `fds` senders. Each child writes one byte to a \
             ready channel and then waits at one shared channel. Main reads all the bytes, takes the time, writes \
             one byte that nobody reads, which wakes all the children at once, and reaps them.",
            "A sender writes `loops` messages to each receiver of its group; a receiver has a channel of its own \
             and reads `fds` times `loops` messages. A message is one write and one read. A reader sleeps on an \
             empty channel and a writer on a full one, so there are far fewer switches than messages.",
            "Creation is not timed; the exits and the reaping are.",
        ],
        parameters: &[
            parameter(
                "page faults of an exiting process",
                Quantity::Number(EXIT.map + EXIT.copy),
                "rt-tests 2.4 of Debian 12 under `perf trace -F all`: a receiver meets 14 after its last message, \
                 a sender 12 and one before its first",
            ),
            parameter(
                "softirq of a message over TCP",
                Quantity::Time(super::messaging::SOFTIRQ),
                "400,000 messages of 100 bytes took 1.14 s of CPU time with -i and 0.86 s without it (-g 2 -l \
                 500), on a guest with 2 vCPUs (Xeon, Linux 6.18)",
            ),
        ],
        simplified: &[
            "The program's own instructions between two system calls take no time.",
            "Over loopback TCP a message is one of an AF_UNIX stream with a larger buffer and the softirq of the \
             receiving side; segments are not merged.",
        ],
    },
    options: &[
        OptionSpec::number("groups", 10, 1, 100_000, "groups of senders and receivers").short("g"),
        OptionSpec::number("fds", 20, 1, 1_000, "senders, and receivers, per group").short("f"),
        OptionSpec::number("loops", 100, 1, 1_000_000_000, "messages of each sender to each receiver").short("l"),
        OptionSpec::number("datasize", 100, 1, 65_536, "bytes of a message").short("s"),
        OptionSpec::flag("pipe", "pipes instead of sockets").short("p"),
        OptionSpec::flag("threads", "threads instead of processes").short("T"),
        OptionSpec::flag("process", "processes, the default").short("P"),
        OptionSpec::flag("inet", "loopback TCP: the receiving side's softirq runs in the sender's call").short("i"),
        OptionSpec::flag("fifo", "main runs as SCHED_FIFO of priority 1, its children do not").short("F"),
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
