//! The processes of a run: a root in a session of its own that starts everything and kills whatever is left.
//!
//! The supervisor stays outside of the session. When it ends in any way, even by kill -9, the root reads the end of a
//! pipe, kills every process of its session, removes the control groups and exits: nothing outlives a run.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags};
use rustix::pipe::{pipe_with, PipeFlags};
use rustix::process::{kill_process, set_child_subreaper, setsid, Pid, Signal};

use crate::error::{errno, os, Result};
use crate::sys::{self, Forked};

/// The root of a run's processes, as the supervisor holds it.
#[derive(Debug)]
pub struct Root {
    pid: i32,
    /// Closed to end the run.
    rope: Option<OwnedFd>,
}

/// What the root does at its start and at its end.
pub trait Plan {
    /// Starts the processes of the run, as children of the caller.
    fn start(&mut self);
    /// A child of the root has ended.
    fn ended(&mut self, pid: i32, status: i32);
    /// Sessions beside the root's own in which processes of the run live.
    fn sessions(&self) -> &[i32];
    /// Everything is dead: clean up.
    fn clean(&mut self);
}

impl Root {
    /// Forks the root, which starts the plan's processes.
    pub fn start(plan: &mut dyn Plan) -> Result<Root> {
        let (watched, rope) = pipe_with(PipeFlags::CLOEXEC).map_err(errno("pipe"))?;
        match sys::fork().map_err(os("fork"))? {
            Forked::Parent(pid) => Ok(Root { pid, rope: Some(rope) }),
            Forked::Child => {
                drop(rope);
                root(plan, &watched);
                sys::exit_now(0);
            }
        }
    }

    /// Ends everything and waits until it has.
    pub fn end(&mut self) {
        if self.rope.take().is_some() {
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

fn root(plan: &mut dyn Plan, watched: &OwnedFd) {
    sys::unblock_signals();
    let signals = sys::signal_fd(&[libc::SIGCHLD]);
    // Both can only fail for a process that already leads a session, and a new one does not.
    let _ = setsid();
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
    plan.start();
    let own = rustix::process::getpid().as_raw_nonzero().get();
    if let Ok(signals) = signals {
        loop {
            let mut fds = [PollFd::new(watched, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
            let _ = poll(&mut fds, None);
            let over = !fds[0].revents().is_empty();
            while sys::take_signal(&signals).is_some() {}
            if over {
                break;
            }
            while let Ok(Some((pid, status))) = sys::wait_any(false, false) {
                plan.ended(pid, status);
            }
        }
    }
    kill_sessions(&[&[own], plan.sessions()].concat(), own);
    plan.clean();
}

/// Kills every process of these sessions but `spare`, until none is left or five seconds have passed.
fn kill_sessions(sessions: &[i32], spare: i32) {
    for _ in 0..5000 {
        let members = members(sessions, spare);
        for pid in members.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            // Gone already is just as well.
            let _ = kill_process(pid, Signal::KILL);
        }
        while let Ok(Some(_)) = sys::wait_any(false, false) {}
        if members.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The processes of these sessions that are not dead, but `spare`.
fn members(sessions: &[i32], spare: i32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| *pid != spare && session_of(*pid).is_some_and(|sid| sessions.contains(&sid))).collect()
}

/// Field 6 of /proc/PID/stat; `None` for a process that is gone or a zombie.
fn session_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let session = fields.nth(2)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(session)
}
