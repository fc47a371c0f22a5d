//! Records the kernel's scheduler tracepoints during a run, in a tracefs instance of its own that is drained to memory.
//!
//! The buffer pages are kept as the kernel wrote them and appended to the header of a `trace.dat`, so that the reader
//! of that format (crates/schedlab-trace) decodes them: with ns resolution, on the clock that the application events
//! use.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{fcntl_setfl, memfd_create, MemfdFlags, OFlags};
use schedlab_trace::TraceReader;

use crate::error::{AgentError, Result};
use crate::settings::Settings;

/// The mount points of tracefs.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The recorded tracepoints. The last is enabled only if the trace is kept, because no metric needs it.
const EVENTS: [&str; 8] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exit",
    "sched_stat_runtime",
];

/// A recording in progress, or the reason why there is none.
#[derive(Debug)]
pub enum Recording {
    /// Nothing is recorded, for the given reason.
    Off(String),
    /// An instance of tracefs.
    On(Instance),
}

/// A tracefs instance; removed when dropped.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    tracefs: PathBuf,
    cpus: Vec<Stream>,
    page: usize,
}

/// One CPU's raw pages.
#[derive(Debug)]
struct Stream {
    pipe: File,
    pages: Vec<u8>,
}

/// Starts recording if it is enabled and permitted.
#[must_use]
pub fn begin(settings: &Settings) -> Recording {
    if !settings.tracing {
        return Recording::Off("tracing is disabled".into());
    }
    let events = if settings.trace.is_some() { &EVENTS[..] } else { &EVENTS[..EVENTS.len() - 1] };
    match Instance::begin(settings.buffer_kb, events) {
        Ok(instance) => Recording::On(instance),
        Err(why) => Recording::Off(why),
    }
}

/// The mount point of tracefs, if this user may use it.
pub fn mounted() -> std::result::Result<PathBuf, String> {
    let mut why = "tracefs is not mounted; mount -t tracefs none /sys/kernel/tracing (as root)";
    for path in MOUNTS.iter().map(Path::new) {
        match path.join("trace_clock").try_exists() {
            Ok(true) => return Ok(path.to_path_buf()),
            Ok(false) => {}
            Err(_) => why = "tracefs is accessible to root only; run it as root",
        }
    }
    Err(why.into())
}

/// Checks that recording is possible, without lasting effect.
pub fn permitted() -> std::result::Result<(), String> {
    Instance::begin(64, &EVENTS).map(drop)
}

/// The path of a supervisor's instance, by its process id.
fn instance_of(tracefs: &Path, pid: u32) -> PathBuf {
    tracefs.join("instances").join(format!("schedlab-{pid}"))
}

/// Removes the instance that a supervisor left behind when it was killed. The kernel refuses to remove an instance
/// whose buffers are open, so one in use is kept.
pub fn remove_instance_of(pid: u32) {
    if let Ok(tracefs) = mounted() {
        // Usually it does not exist.
        let _ = fs::remove_dir(instance_of(&tracefs, pid));
    }
}

impl Recording {
    /// Reads what the kernel has written so far.
    pub fn drain(&mut self) {
        if let Recording::On(instance) = self {
            instance.drain();
        }
    }

    /// Stops recording and reads the rest.
    pub fn stop(&mut self) {
        if let Recording::On(instance) = self {
            // A failure does not matter because the instance is removed later.
            let _ = fs::write(instance.path.join("tracing_on"), "0");
            instance.drain();
        }
    }

    /// The reason why nothing is recorded.
    #[must_use]
    pub fn off_reason(&self) -> Option<&str> {
        match self {
            Recording::Off(why) => Some(why),
            Recording::On(_) => None,
        }
    }

    /// A reader for the whole recording.
    pub fn reader(&mut self) -> Result<Option<Box<dyn TraceReader>>> {
        match self {
            Recording::Off(_) => Ok(None),
            Recording::On(instance) => {
                let failed = |what: String| AgentError::failed(format!("the recorded trace: {what}"), "");
                let file = instance.file().map_err(|error| failed(error.to_string()))?;
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                let reader = schedlab_trace::open(Path::new(&path)).map_err(|error| failed(error.to_string()))?;
                Ok(Some(reader))
            }
        }
    }
}

impl Instance {
    fn begin(buffer_kb: u32, events: &[&str]) -> std::result::Result<Instance, String> {
        let tracefs = mounted()?;
        let path = instance_of(&tracefs, std::process::id());
        let made = fs::create_dir(&path);
        made.map_err(|error| format!("{}: {error}; run it as root", path.display()))?;
        let mut instance = Instance { path, tracefs, cpus: Vec::new(), page: 4096 };
        instance.set("trace_clock", "mono")?;
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let share = crate::memory::available_kib() / 8 / cpus;
        instance.set("buffer_size_kb", &u64::from(buffer_kb).min(share).max(64).to_string())?;
        instance.set("tracing_on", "0")?;
        for event in events {
            let file = format!("events/sched/{event}/enable");
            if instance.path.join(&file).exists() {
                instance.set(&file, "1")?;
            }
        }
        instance.open()?;
        // All events were enabled while tracing was off, so that none is missing at the start.
        instance.set("tracing_on", "1")?;
        Ok(instance)
    }

    fn set(&self, file: &str, value: &str) -> std::result::Result<(), String> {
        let path = self.path.join(file);
        fs::write(&path, value).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn open(&mut self) -> std::result::Result<(), String> {
        let layout = fs::read_to_string(self.tracefs.join("events/header_page")).unwrap_or_default();
        self.page = page_size(&layout).unwrap_or(self.page);
        for cpu in 0.. {
            let path = self.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            if !path.exists() {
                break;
            }
            let pipe = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            fcntl_setfl(&pipe, OFlags::NONBLOCK).map_err(|error| format!("{}: {error}", path.display()))?;
            self.cpus.push(Stream { pipe, pages: Vec::new() });
        }
        Ok(())
    }

    fn drain(&mut self) {
        let mut page = vec![0; self.page];
        for stream in &mut self.cpus {
            while let Ok(read) = stream.pipe.read(&mut page) {
                if read == 0 {
                    break;
                }
                // A partial page is returned short; in the file every page has full size.
                page[read..].fill(0);
                stream.pages.extend_from_slice(&page);
            }
        }
    }

    /// The recording as a `trace.dat` of version 6, in memory.
    fn file(&self) -> std::io::Result<File> {
        let mut file: File = memfd_create("schedlab-trace", MemfdFlags::CLOEXEC)?.into();
        let head = self.head();
        file.write_all(&head)?;
        let places = 10 + 16 * self.cpus.len();
        let mut offset = (head.len() + places).next_multiple_of(self.page) as u64;
        file.write_all(b"flyrecord\0")?;
        for stream in &self.cpus {
            file.write_all(&offset.to_le_bytes())?;
            file.write_all(&(stream.pages.len() as u64).to_le_bytes())?;
            offset += stream.pages.len() as u64;
        }
        file.seek(SeekFrom::Start((head.len() + places).next_multiple_of(self.page) as u64))?;
        for stream in &self.cpus {
            file.write_all(&stream.pages)?;
        }
        // The file of an empty recording ends with a full page, too.
        let end = file.stream_position()?;
        file.set_len(end)?;
        Ok(file)
    }

    /// The header of a trace.dat(5) of version 6, up to the offsets of the pages.
    fn head(&self) -> Vec<u8> {
        let mut head = b"\x17\x08\x44tracing6\0\0\x08".to_vec();
        head.extend((self.page as u32).to_le_bytes());
        let text = |path: &str| fs::read(self.tracefs.join(path)).unwrap_or_default();
        let sized = |head: &mut Vec<u8>, content: &[u8]| {
            head.extend((content.len() as u64).to_le_bytes());
            head.extend(content);
        };
        head.extend(b"header_page\0");
        sized(&mut head, &text("events/header_page"));
        head.extend(b"header_event\0");
        sized(&mut head, &text("events/header_event"));
        // ftrace's own events, then those of one system.
        head.extend(0u32.to_le_bytes());
        head.extend(1u32.to_le_bytes());
        head.extend(b"sched\0");
        let formats: Vec<Vec<u8>> = EVENTS.iter().map(|event| text(&format!("events/sched/{event}/format"))).collect();
        let known: Vec<&Vec<u8>> = formats.iter().filter(|format| !format.is_empty()).collect();
        head.extend((known.len() as u32).to_le_bytes());
        known.iter().for_each(|format| sized(&mut head, format));
        // Neither kallsyms nor printk formats.
        head.extend(0u32.to_le_bytes());
        head.extend(0u32.to_le_bytes());
        sized(&mut head, &text("saved_cmdlines"));
        head.extend((self.cpus.len() as u32).to_le_bytes());
        head
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.cpus.clear();
        // There is nothing more to do if the removal fails.
        let _ = fs::remove_dir(&self.path);
    }
}

/// The size of a ring-buffer page: offset and size of the field `data`.
fn page_size(layout: &str) -> Option<usize> {
    let line = layout.lines().find(|line| line.contains("char data;"))?;
    let field = |name: &str| line.split(';').find_map(|part| part.trim().strip_prefix(name)?.parse::<usize>().ok());
    Some(field("offset:")? + field("size:")?).filter(|size| size.is_power_of_two())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_size_is_read_from_the_layout() {
        let layout = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                      \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        assert_eq!(page_size(layout), Some(4096));
        assert_eq!(page_size(""), None);
    }
}
