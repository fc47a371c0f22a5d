//! The processes of a run: a root process in a session of its own starts all others and kills those that remain.
//!
//! The supervisor stays outside of the session. When it exits in any way, even by SIGKILL, the root process reads the
//! end of a pipe, kills every process of its session, removes the control groups and exits, so that nothing outlives a
//! run.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags};
use rustix::pipe::{pipe_with, PipeFlags};
use rustix::process::{kill_process, set_child_subreaper, setsid, Pid, Signal};

use crate::error::{errno, os, Result};
use crate::sys::{self, Forked};

/// The supervisor's handle of the root process.
#[derive(Debug)]
pub struct Root {
    pid: i32,
    /// The write end of the pipe; closing it ends the run.
    write_end: Option<OwnedFd>,
}

/// What the root process does at the start and at the end of a run.
pub trait RootActions {
    /// Starts the processes of the run as children of the caller.
    fn start(&mut self);
    /// Called when a child of the root process has exited.
    fn child_exited(&mut self, pid: i32, status: i32);
    /// The sessions with processes of the run, other than the root's own.
    fn sessions(&self) -> &[i32];
    /// Called when all processes have been killed.
    fn clean_up(&mut self);
}

impl Root {
    /// Forks the root process, which starts the others.
    pub fn start(actions: &mut dyn RootActions) -> Result<Root> {
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC).map_err(errno("pipe"))?;
        match sys::fork().map_err(os("fork"))? {
            Forked::Parent(pid) => Ok(Root { pid, write_end: Some(write_end) }),
            Forked::Child => {
                drop(write_end);
                root(actions, &read_end);
                sys::exit_now(0);
            }
        }
    }

    /// Ends the run and waits until all processes have exited.
    pub fn end(&mut self) {
        if self.write_end.take().is_some() {
            while !matches!(sys::wait_any(true, false), Ok(Some((pid, _))) if pid == self.pid) {
                if sys::wait_any(false, false).is_err() {
                    return;
                }
            }
        }
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.end();
    }
}

fn root(actions: &mut dyn RootActions, read_end: &OwnedFd) {
    sys::unblock_signals();
    let signals = sys::signal_fd(&[libc::SIGCHLD]);
    // Both fail only in a process that already leads a session, which a new process never does.
    let _ = setsid();
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
    actions.start();
    let own = rustix::process::getpid().as_raw_nonzero().get();
    if let Ok(signals) = signals {
        loop {
            let mut fds = [PollFd::new(read_end, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
            let _ = poll(&mut fds, None);
            let over = !fds[0].revents().is_empty();
            while sys::take_signal(&signals).is_some() {}
            if over {
                break;
            }
            while let Ok(Some((pid, status))) = sys::wait_any(false, false) {
                actions.child_exited(pid, status);
            }
        }
    }
    kill_sessions(&[&[own], actions.sessions()].concat(), own);
    actions.clean_up();
}

/// Kills all processes of these sessions except `spare`, until none is left or five seconds have passed.
fn kill_sessions(sessions: &[i32], spare: i32) {
    for _ in 0..5000 {
        let members = members(sessions, spare);
        for pid in members.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            // The process may have exited meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        while let Ok(Some(_)) = sys::wait_any(false, false) {}
        if members.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The processes of these sessions, without zombies and without `spare`.
fn members(sessions: &[i32], spare: i32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| *pid != spare && session_of(*pid).is_some_and(|sid| sessions.contains(&sid))).collect()
}

/// The session of a process (field 6 of /proc/PID/stat); `None` if it has exited.
fn session_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let session = fields.nth(2)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(session)
}
