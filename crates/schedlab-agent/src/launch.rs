//! The task that starts a real program, waits for it, and starts it again if the workload repeats.
//!
//! The task sets the workload's attributes first, so that the program and its children inherit them.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use rustix::event::{poll, PollFd, PollFlags};
use rustix::process::{kill_process, pidfd_open, Pid, PidfdFlags, Signal};
use schedlab_model::{Nanos, SEC};

use crate::clock;
use crate::program::netperf::Server;
use crate::program::RealProgram;
use crate::shared_state::{Failure, SharedState};

/// How long an interrupted program may take to print its results. A histogram is long, the other tasks of the scenario
/// still run, and emulated CPUs are slow.
pub const GRACE: Nanos = 60 * SEC;

/// Added to the number of the signal that ended a program; exit codes are smaller.
const SIGNALLED: u64 = 256;

/// One run of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Its start, in run time.
    pub begin: Nanos,
    /// Its end, in run time.
    pub end: Nanos,
    /// How it failed; empty if it succeeded.
    pub failed: String,
    /// Its output on stdout and stderr.
    pub output: [String; 2],
}

/// Runs the program of task `id` until it has ended or the run is over.
pub fn run_program(shared: &SharedState, id: u32, real: &RealProgram, duration: Nanos) {
    let deadline = shared.control.begin.load(Relaxed) + duration;
    let failed = |error: std::io::Error| {
        shared.fail(id, 0, Failure::Program, error.raw_os_error().unwrap_or(libc::ENOENT));
    };
    let _server = match real.server.as_ref().map(Server::start).transpose() {
        Ok(server) => server,
        Err(error) => return failed(error),
    };
    loop {
        let begin = shared.time();
        let from = real.output.each_ref().map(length);
        let children: std::io::Result<Vec<Child>> = (0..real.copies).map(|_| start(real)).collect();
        let mut children = match children {
            Ok(children) => children,
            Err(error) => return failed(error),
        };
        let ended: Option<Vec<i32>> = children.iter_mut().map(|child| wait(child, deadline, real.interrupt)).collect();
        let end = shared.time();
        let Some(statuses) = ended else { return };
        let status = statuses.into_iter().find(|status| *status != 0).unwrap_or(0);
        let to = real.output.each_ref().map(length);
        let line = format!("{begin} {end} {status} {} {} {} {}\n", from[0], to[0], from[1], to[1]);
        if append(&real.passes, &line).is_err() {
            return shared.fail(id, 0, Failure::Program, libc::EIO);
        }
        if !real.repeat || status != 0 {
            break;
        }
    }
    if real.interrupt {
        shared.control.reporting.fetch_sub(1, AcqRel);
        shared.wake_supervisor();
    }
}

fn start(real: &RealProgram) -> std::io::Result<Child> {
    let [stdout, stderr] = &real.output;
    let (program, arguments) = real.argv.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
    Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .envs(real.environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::from(stdout.try_clone()?))
        .stderr(Stdio::from(stderr.try_clone()?))
        .spawn()
}

/// Waits for the exit code, [`SIGNALLED`] plus the number for a signal. `None` if the run was over first and the
/// program does not print its results when it is interrupted.
fn wait(child: &mut Child, deadline: Nanos, interrupt: bool) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    let pid = Pid::from_child(child);
    let code = |child: &mut Child| {
        let status = child.wait().ok()?;
        status.code().or_else(|| status.signal().map(|signal| SIGNALLED as i32 + signal))
    };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return code(child) };
    if ends_before(&handle, deadline) {
        return code(child);
    }
    if !interrupt {
        return None;
    }
    // Fails if the program has just ended.
    let _ = kill_process(pid, Signal::INT);
    // An interrupted program has printed its results, whatever its exit code, unless it was killed.
    ends_before(&handle, deadline + GRACE)
        .then(|| code(child).filter(|code| *code == SIGNALLED as i32 + libc::SIGKILL).unwrap_or(0))
}

fn ends_before(handle: &OwnedFd, deadline: Nanos) -> bool {
    loop {
        let left = deadline.saturating_sub(clock::now());
        let mut fds = [PollFd::new(handle, PollFlags::IN)];
        match poll(&mut fds, Some(&clock::timespec(left))) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(_) => {}
        }
    }
}

fn length(file: &OwnedFd) -> u64 {
    rustix::fs::fstat(file).map_or(0, |stat| stat.st_size as u64)
}

fn append(file: &OwnedFd, line: &str) -> std::io::Result<()> {
    let mut file = File::from(file.try_clone()?);
    file.seek(SeekFrom::End(0))?;
    file.write_all(line.as_bytes())
}

/// The completed passes with the output of each.
pub fn passes(real: &RealProgram) -> std::io::Result<Vec<Pass>> {
    let text = |file: &OwnedFd| -> std::io::Result<Vec<u8>> {
        let mut file = File::from(file.try_clone()?);
        file.seek(SeekFrom::Start(0))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let output = [text(&real.output[0])?, text(&real.output[1])?];
    let part = |bytes: &[u8], from: u64, to: u64| {
        String::from_utf8_lossy(bytes.get(from as usize..to as usize).unwrap_or_default()).into_owned()
    };
    let pass = |line: &str| {
        let fields: Vec<u64> = line.split(' ').filter_map(|field| field.parse().ok()).collect();
        let [begin, end, status, out_from, out_to, err_from, err_to] = fields[..] else { return None };
        let failed = match status {
            0 => String::new(),
            SIGNALLED.. => format!("killed by signal {}", status - SIGNALLED),
            code => format!("exit code {code}"),
        };
        let output = [part(&output[0], out_from, out_to), part(&output[1], err_from, err_to)];
        Some(Pass { begin, end, failed, output })
    };
    Ok(String::from_utf8_lossy(&text(&real.passes)?).lines().filter_map(pass).collect())
}
