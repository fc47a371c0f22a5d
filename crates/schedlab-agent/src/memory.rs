//! The available memory of the machine.

use std::fs;

/// The available memory in KiB; 1 GiB if the kernel does not report it.
#[must_use]
pub fn available_kib() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"));
    line.and_then(|kib| kib.parse().ok()).unwrap_or(1 << 20)
}
