//! `perf bench sched messaging` (perf 6.1): hackbench with 20 fds and messages of 100 bytes.

use super::about::{parameter, About, Quantity};
use super::forked::Faults;
use super::messaging::Messaging;
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Settings};
use crate::{Better, Unit, Workload};

const TOTAL_TIME: MetricSpec = MetricSpec::headline(
    "total_time",
    Unit::Seconds,
    Better::Lower,
    "from the wakeup of all tasks until the last is reaped; creation is not part of it",
);

/// 123 faults after the last message, 50 of them copies: the destructors of 30 libraries to which this perf is linked
/// (perf 6.1 of Debian 12, `perf trace -F all`). A perf with fewer libraries meets fewer.
const EXIT: Faults = Faults { map: 73, copy: 50 };

pub(super) const ENTRY: Entry = Entry {
    id: "perf-messaging",
    summary: "perf bench sched messaging: hackbench, 20 fds",
    about: About {
        structure: &[
            "As `hackbench`, with 20 senders and 20 receivers in each group and messages of 100 bytes: `group` \
             times 40 tasks, one write and one read per message.",
            "Creation is not timed; the exits and the reaping are.",
        ],
        parameters: &[parameter(
            "page faults of an exiting process",
            Quantity::Number(EXIT.map + EXIT.copy),
            "perf 6.1 of Debian 12 under `perf trace -F all`: the destructors of the 30 libraries to which it \
                 is linked, 50 of them copies; a perf with fewer libraries meets fewer",
        )],
        simplified: &["The program's own instructions between two system calls take no time."],
    },
    options: &[
        OptionSpec::number("group", 10, 1, 5_000, "groups of 20 senders and 20 receivers").short("g"),
        OptionSpec::number("nr_loops", 100, 1, 1_000_000_000, "messages of each sender to each receiver").short("l"),
        OptionSpec::flag("pipe", "pipes instead of sockets").short("p"),
        OptionSpec::flag("thread", "threads instead of processes").short("t"),
    ],
    metrics: &[TOTAL_TIME],
    ends: Ends::Always,
    build,
};

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let program = Messaging {
        // perf names the task after collection and benchmark.
        comm: "sched-messaging",
        groups: settings.count("group"),
        fds: 20,
        loops: settings.count("nr_loops"),
        datasize: 100,
        inet: false,
        pipe: settings.flag("pipe"),
        threads: settings.flag("thread"),
        fifo: false,
        exit: EXIT,
        time: TOTAL_TIME,
    };
    program.build(settings, "group")
}
