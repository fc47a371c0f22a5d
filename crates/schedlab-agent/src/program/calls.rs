//! The table of programs: which executable runs which workload of the catalogue, and how it is called.

use super::lmbench;

/// How one program of the catalogue is called.
pub struct ProgramCall {
    /// The catalogue's id.
    pub id: &'static str,
    /// The executable, searched in PATH.
    pub executable: &'static str,
    /// Arguments before the options.
    pub subcommand: &'static [&'static str],
    /// Arguments after the options: the subcommand of sysbench, and the choices of a program that its model fixes.
    pub after: &'static [&'static str],
    /// Variables of its environment, in addition to those of the agent.
    pub environment: &'static [(&'static str, &'static str)],
    /// The executable of the server that it needs.
    pub server: Option<&'static str>,
    /// Whether the program refuses to run as root.
    pub not_as_root: bool,
    /// The option that prints its version; empty if there is none.
    pub version: &'static str,
    /// The first version that is this program, and the first that is another one under the same name.
    pub versions: [Option<(u32, u32)>; 2],
    /// Whether the program prints its results when it is interrupted.
    pub interruptible: bool,
    /// The package that contains it, for the hint.
    pub package: &'static str,
}

/// Every program, in the order in which `doctor` names their executables.
pub const PROGRAM_CALLS: [ProgramCall; 45] = [
    call("hackbench", "hackbench", &[], false, "rt-tests"),
    call("perf-messaging", "perf", &["bench", "sched", "messaging"], false, "linux-perf"),
    ProgramCall { versions: [None, Some((6, 15))], ..PIPE },
    ProgramCall { id: "perf-pipe-6.15", versions: [Some((6, 15)), None], ..PIPE },
    ProgramCall {
        versions: [Some((6, 6)), None],
        ..call("perf-seccomp-notify", "perf", &["bench", "sched", "seccomp-notify"], false, "linux-perf")
    },
    call("perf-futex-hash", "perf", &["bench", "futex", "hash"], false, "linux-perf"),
    call("perf-futex-wake", "perf", &["bench", "futex", "wake"], false, "linux-perf"),
    call("perf-futex-wake-parallel", "perf", &["bench", "futex", "wake-parallel"], false, "linux-perf"),
    call("perf-futex-requeue", "perf", &["bench", "futex", "requeue"], false, "linux-perf"),
    call("perf-futex-lock-pi", "perf", &["bench", "futex", "lock-pi"], false, "linux-perf"),
    call("cyclictest", "cyclictest", &["--quiet"], true, "rt-tests"),
    stressor("stress-ng-cpu"),
    stressor("stress-ng-switch"),
    stressor("stress-ng-fork"),
    stressor("stress-ng-futex"),
    stressor("stress-ng-nanosleep"),
    stressor("stress-ng-sem"),
    stressor("stress-ng-context"),
    stressor("stress-ng-aio"),
    stressor("stress-ng-pipe"),
    stressor("stress-ng-mmap"),
    stressor("stress-ng-vm"),
    stressor("stress-ng-sock"),
    ProgramCall {
        after: &["--exec-method", "execve", "--exec-fork-method", "fork", "--exec-no-pthread"],
        not_as_root: true,
        ..stressor("stress-ng-exec")
    },
    ProgramCall { after: &["run"], ..call("sysbench-cpu", "sysbench", &["cpu"], false, "sysbench") },
    ProgramCall { after: &["run"], ..call("sysbench-threads", "sysbench", &["threads"], false, "sysbench") },
    ProgramCall { after: &["run"], ..call("sysbench-mutex", "sysbench", &["mutex"], false, "sysbench") },
    ProgramCall {
        after: &["--memory-total-size=0", "run"],
        ..call("sysbench-memory", "sysbench", &["memory"], false, "sysbench")
    },
    tool("lmbench-lat-proc", "lat_proc"),
    tool("lmbench-lat-pipe", "lat_pipe"),
    tool("lmbench-lat-unix", "lat_unix"),
    tool("lmbench-lat-sem", "lat_sem"),
    tool("lmbench-lat-ctx", "lat_ctx"),
    tool("lmbench-lat-select", "lat_select"),
    tool("lmbench-lat-syscall", "lat_syscall"),
    count("unixbench-context1"),
    count("unixbench-spawn"),
    count("unixbench-syscall"),
    count("unixbench-pipe"),
    NETPERF,
    ProgramCall { id: "netperf-udp-rr", ..NETPERF },
    call("rt-app", "rt-app", &[], true, "rt-app"),
    call("schbench", "schbench", &[], false, ""),
    call("schbench-2020", "schbench", &[], false, ""),
    call("schbench-1.0", "schbench", &[], false, ""),
];

/// Both sides of it write before they read from perf 6.15 on.
const PIPE: ProgramCall = call("perf-pipe", "perf", &["bench", "sched", "pipe"], false, "linux-perf");

const NETPERF: ProgramCall = ProgramCall {
    server: Some("netserver"),
    version: "-V",
    ..call("netperf-tcp-rr", "netperf", &[], false, "netperf (of the component non-free)")
};

const fn call(
    id: &'static str,
    executable: &'static str,
    subcommand: &'static [&'static str],
    interruptible: bool,
    package: &'static str,
) -> ProgramCall {
    ProgramCall {
        id,
        executable,
        subcommand,
        after: &[],
        environment: &[],
        server: None,
        not_as_root: false,
        version: "--version",
        versions: [None; 2],
        interruptible,
        package,
    }
}

/// A stressor of stress-ng, whose workload is called after it.
const fn stressor(id: &'static str) -> ProgramCall {
    call(id, "stress-ng", &["--metrics-brief"], true, "stress-ng")
}

/// A program of UnixBench. It takes any argument for its seconds, and 0 is for ever, so it cannot be asked for its
/// version.
const fn count(id: &'static str) -> ProgramCall {
    ProgramCall { version: "", ..call(id, id, &[], false, "") }
}

/// A latency tool of lmbench.
const fn tool(id: &'static str, executable: &'static str) -> ProgramCall {
    let package = "lmbench (of the component non-free), and add its folder below /usr/lib/lmbench/bin to PATH";
    ProgramCall { environment: lmbench::ENVIRONMENT, ..call(id, executable, &[], false, package) }
}
