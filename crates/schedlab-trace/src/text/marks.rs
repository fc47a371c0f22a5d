//! Lines that are no event: marks of lost events, what tools print before the first event, the stacks that follow one.

use schedlab_model::CpuId;

/// A mark of events that the recorder lost on a CPU: `CPU:3 [LOST 123 EVENTS]` of ftrace, `CPU:3 [123 EVENTS DROPPED]`
/// of trace-cmd; without a number where the kernel could not store it.
pub fn lost_events(line: &str) -> Option<(CpuId, u64)> {
    let (cpu, mark) = line.strip_prefix("CPU:")?.split_once('[')?;
    if !mark.starts_with("LOST") && !mark.contains("EVENTS DROPPED") {
        return None;
    }
    let count = mark.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok());
    let cpu = cpu.trim().parse().ok().filter(|cpu| (*cpu as usize) < schedlab_model::MAX_CPUS)?;
    Some((CpuId(cpu), count.unwrap_or(1).max(1)))
}

/// A record of perf that is no sample, as `perf script --show-lost-events` and its sisters print it: its name and the
/// rest of the line.
pub fn perf_record(line: &str) -> Option<(&str, &str)> {
    let at = line.find("PERF_RECORD_")?;
    let before = line[..at].trim_end();
    if !before.is_empty() && !before.ends_with(':') {
        return None;
    }
    let text = &line[at..];
    Some(text.split_once(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or((text, "")))
}

/// How many events a record of perf says were lost.
pub fn perf_lost((name, rest): (&str, &str)) -> Option<u64> {
    if !matches!(name, "PERF_RECORD_LOST" | "PERF_RECORD_LOST_SAMPLES") {
        return None;
    }
    let after = rest.rsplit_once("lost")?.1;
    Some(after.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok()).unwrap_or(1))
}

/// What tools print around the events and what is not needed: trace-cmd's version, its empty CPUs, the pages of
/// `--debug`, the plugins of `-V` and the latencies of `-w`, the words of atrace.
pub fn is_chatter(line: &str) -> bool {
    let numbered = |start: &str, end: &str| {
        let middle = line.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
        middle.is_some_and(|number| !number.is_empty() && number.trim().bytes().all(|byte| byte.is_ascii_digit()))
    };
    numbered("version = ", "")
        || numbered("CPU ", " is empty")
        || line.starts_with("CPU:") && line.contains("[SUBBUFFER START]")
        || ["registering plugin: ", "overriding event "].iter().any(|start| line.starts_with(start))
        || ["Average wakeup latency: ", "Maximum Latency: ", "Minimum Latency: "]
            .iter()
            .any(|start| line.starts_with(start))
        || line == "RT task timings:"
        || line == "TRACE:"
        || line.starts_with("capturing trace...")
}

/// An event of `trace-cmd report --debug` without where it lies in its page: `... [29775:0x5c:36]`.
pub fn without_place(line: &str) -> &str {
    let is = |text: &str, digit: fn(&u8) -> bool| !text.is_empty() && text.bytes().all(|byte| digit(&byte));
    let place = |text: &str| {
        let mut parts = text.strip_suffix(']')?.split(':');
        let (delta, at, size) = (parts.next()?, parts.next()?.strip_prefix("0x")?, parts.next()?);
        let all = is(delta, u8::is_ascii_digit) && is(at, u8::is_ascii_hexdigit) && is(size, u8::is_ascii_digit);
        (all && parts.next().is_none()).then_some(())
    };
    match line.rsplit_once(" [") {
        Some((event, rest)) if place(rest).is_some() => event,
        _ => line,
    }
}

/// Whether the events of this name hold text of programs, which may contain the end of a line.
pub fn is_free_text(name: &str) -> bool {
    matches!(
        name,
        "" | "print" | "bprint" | "bputs" | "tracing_mark_write" | "raw_data" | "bprintk" | "printk" | "console"
    )
}

/// A line of the stack below an event: ` => schedule` of ftrace and trace-cmd.
pub fn is_stack(line: &str) -> bool {
    line.trim_start().starts_with("=> ")
}

/// A line of the call chain below a sample of perf: `\tffffffff81a1b2c3 __schedule+0x123 ([kernel.kallsyms])`.
pub fn is_call_chain(line: &str) -> bool {
    let address = line.split_ascii_whitespace().next().unwrap_or("");
    let hex = address.strip_prefix("0x").unwrap_or(address);
    line.starts_with([' ', '\t']) && !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}
