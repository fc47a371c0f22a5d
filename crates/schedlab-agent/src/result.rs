//! Turns application events and recorded tracepoints into the report that every arm writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use schedlab_metrics::{list_tasks, Metrics, Plan};
use schedlab_model::{CpuId, KernelId, Nanos};
use schedlab_spec::RunSpec;
use schedlab_trace::{Body, Digest, Event, Header, Kind, Sink, Tee};
use schedlab_workload::cpu_stat::{cpu_stat, throttled_periods, CPU_STATS};
use schedlab_workload::MetricKind;
use serde_json::{json, Value as Json};

use crate::burn::Speed;
use crate::counters::Counts;
use crate::error::{AgentError, Result};
use crate::life::spec_of;
use crate::merge::{Merged, Merger};
use crate::program_results;
use crate::settings::Settings;
use crate::shared_state::SharedState;
use crate::tracing::Recording;

/// The data of a run, except its trace.
pub struct Measured<'a> {
    /// The specification of the run.
    pub spec: &'a RunSpec,
    /// The state of its tasks.
    pub shared: &'a SharedState,
    /// The start of the run on the monotonic clock.
    pub begin: Nanos,
    /// When and how the run ended.
    pub ended: Ended,
    /// The kernel's counters since the end of the warm-up.
    pub counts: Counts,
    /// The speed after the run.
    pub after: Speed,
    /// The wall-clock time of the run, including its preparation.
    pub wall_ns: Nanos,
    /// A deviation from what the workload requires.
    pub note: Option<String>,
}

/// When and how a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Run time.
    pub at: Nanos,
    /// Whether the workloads ended by themselves.
    pub completed: bool,
}

/// Reasons for a null value on a real kernel.
const NO_CPU_STAT: &str = "the group's cpu.stat has no bandwidth statistics";
const NO_SCAN: &str = "the kernel has no tracepoint in the search for an idle CPU";

/// The report as JSON: the keys of `schedlab run --json` that a real run has, and `arm`, `release`, `unavailable`,
/// `calibration`, `noise`, `trace`, `run_s`, `wall_s`.
pub fn report(measured: &Measured<'_>, mut recording: Recording, settings: &Settings) -> Result<Json> {
    let Measured { spec, shared, ended, .. } = measured;
    check_complete(shared)?;
    let counted = spec.cgroups.iter().filter(|group| group.counted);
    let groups: Vec<&str> = counted.map(|group| group.path.as_str()).collect();
    let plan = Plan::of(&spec.workloads, spec.machine.topology.nr_cpus(), spec.warmup);
    let of_groups = plan.metrics.len();
    let plan = plan.with_groups(groups.iter().copied()).lasting(spec.duration);
    let header = header(spec, &plan, settings.remark.as_deref());
    let mut names = names(shared);
    let recorded = recorded(measured, &names, &mut recording)?;
    let program_results = program_results::read(shared, &plan, spec.warmup, ended.at)?;
    let mut notes = notes(shared, ended.at);
    notes.extend(&program_results.events);
    notes.extend(throttling(measured, &groups, of_groups));
    notes.sort_by_key(|event| event.time);
    if let Some(recorded) = &recorded {
        add_names(&mut names, recorded);
    }
    let kernel: &[Event] = recorded.as_ref().map_or(&[], |recorded| &recorded.merged.own);
    let mut sink = Tee(Digest::default(), Metrics::new(plan.clone()));
    let trace_error = pour_and_write(&names, &notes, kernel, &mut sink, settings, &header)?;
    let Tee(digest, metrics) = sink;
    let mut json = metrics.finish(ended.at).to_json();
    let mut unavailable = never_measured(measured, &groups);
    program_results.patch(&mut json, &mut unavailable);
    let complete = recorded.as_ref().filter(|recorded| recorded.incomplete().is_none());
    match (complete, recorded.as_ref().and_then(Recorded::incomplete)) {
        (Some(recorded), _) => idle_beside_others(&mut json, recorded, plan, ended.at),
        (None, Some(why)) => without_trace(&mut json, measured, &why, &mut unavailable),
        (None, None) => {
            without_trace(&mut json, measured, recording.off_reason().unwrap_or_default(), &mut unavailable);
        }
    }
    for name in unavailable.keys() {
        if let Some(value) = json["metrics"].get_mut(name) {
            *value = Json::Null;
        }
    }
    let more = json!({
        "drivers": program_results.drivers,
        "switches": json["metrics"]["sched.switches"],
        "unavailable": unavailable,
        "trace_error": trace_error,
    });
    for fields in [of_run(measured, settings, &digest, complete), more] {
        add_known(&mut json, fields);
    }
    Ok(json)
}

/// Refuses a run whose log did not have room for every application event.
fn check_complete(shared: &SharedState) -> Result<()> {
    let lost = shared.pool.lost();
    if lost == 0 {
        return Ok(());
    }
    let what = format!("{lost} application events were lost because the log was full");
    Err(AgentError::failed(what, "use a shorter run, or a machine with more memory"))
}

/// Adds the names of the tasks of real programs, which the trace has.
fn add_names(names: &mut Vec<(i32, String)>, recorded: &Recorded) {
    let known: BTreeSet<i32> = names.iter().map(|(tid, _)| *tid).collect();
    let more = recorded.merged.names.iter().filter(|(tid, _)| !known.contains(tid));
    names.extend(more.map(|(tid, name)| (*tid, name.clone())));
}

/// What is reported of the run besides its metrics. Only a complete trace counts as recorded.
fn of_run(measured: &Measured<'_>, settings: &Settings, digest: &Digest, recorded: Option<&Recorded>) -> Json {
    let Measured { spec, shared, ended, after, .. } = measured;
    json!({
        "kernel": spec.kernel.version.name,
        "release": rustix::system::uname().release().to_string_lossy(),
        "arm": settings.arm,
        "seed": spec.seed,
        "engine": concat!("schedlab-agent ", env!("CARGO_PKG_VERSION")),
        "digest": digest.hex(),
        "events": digest.events(),
        "handled": digest.events(),
        "events_from": if recorded.is_some() { "tracefs and the programs" } else { "the programs" },
        "sim_s": ended.at as f64 / 1e9,
        "wall_s": measured.wall_ns as f64 / 1e9,
        "ended": if ended.completed { "completed" } else { "duration" },
        "calibration": { "before": shared.speed, "after": after, "drift_pct": drift(shared.speed, *after) },
        "noise": noise(measured, recorded),
        "note": measured.note,
    })
}

/// Adds the fields that have a value.
fn add_known(json: &mut Json, fields: Json) {
    if let (Json::Object(json), Json::Object(fields)) = (json, fields) {
        json.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
    }
}

/// Passes all events to the sink, and to the trace if there is one; the error of its file.
fn pour_and_write(
    names: &[(i32, String)],
    notes: &[Event],
    kernel: &[Event],
    sink: &mut Tee<Digest, Metrics>,
    settings: &Settings,
    header: &Header,
) -> Result<Option<String>> {
    let Some(path) = &settings.trace else {
        pour(names, notes, kernel, sink);
        return Ok(None);
    };
    let writer = schedlab_trace::create(path, header);
    let mut writer = writer.map_err(|error| AgentError::input(error.to_string(), "choose another --trace"))?;
    pour(names, notes, kernel, &mut Tee(sink, &mut *writer));
    Ok(writer.finish().err().map(|error| error.to_string()))
}

/// The metrics that no run on this kernel has, with the reason.
fn never_measured(measured: &Measured<'_>, groups: &[&str]) -> BTreeMap<String, String> {
    let scan = ["sched.scan_tested", "sched.scan_cost"].map(|name| (name.to_owned(), NO_SCAN.to_owned()));
    let without = groups.iter().filter(|path| !measured.counts.groups.contains_key(**path));
    let stat = without.flat_map(|path| {
        cpu_stat()
            .into_iter()
            .chain([throttled_periods()])
            .map(move |decl| (format!("{path}.{}", decl.name), NO_CPU_STAT.to_owned()))
    });
    scan.into_iter().chain(stat).collect()
}

/// The recorded tracepoints.
struct Recorded {
    merged: Merged,
    /// The number of events that were lost.
    lost: u64,
}

impl Recorded {
    /// Why the trace does not show every switch, if it does not. Latencies and CPU times would be wrong then.
    fn incomplete(&self) -> Option<String> {
        let Recorded { merged: Merged { switches, unrecorded, .. }, lost } = self;
        if *lost > 0 {
            return Some(format!(
                "{lost} events were lost because the trace buffer was full; enlarge it with --buffer KIB"
            ));
        }
        (*unrecorded > 0).then(|| {
            format!(
                "this kernel does not record every sched_switch: {unrecorded} of {switches} switches are from a task to which \
                 their CPU had not switched"
            )
        })
    }
}

fn recorded(measured: &Measured<'_>, names: &[(i32, String)], recording: &mut Recording) -> Result<Option<Recorded>> {
    let Measured { spec, shared, begin, ended, .. } = measured;
    let Some(mut reader) = recording.reader()? else { return Ok(None) };
    let ours = names.iter().map(|(tid, _)| *tid);
    let mut merger = Merger::new(*begin, spec.warmup, ended.at, &shared.cpus, ours);
    let failed = |error| AgentError::failed(format!("the recorded trace: {error}"), "");
    let mut lost = 0u64;
    while let Some(record) = reader.next_record().map_err(failed)? {
        lost = lost.saturating_add(record.lost());
        if let (Some(event), Body::Event(_, words)) = (record.event(), &record.body) {
            merger.add(&event, words.comm, words.other_comm);
        }
    }
    Ok(Some(Recorded { merged: merger.finish(), lost }))
}

/// Takes idle-while-runnable from the events with foreign tasks, because a CPU that runs one is not idle.
fn idle_beside_others(json: &mut Json, recorded: &Recorded, plan: Plan, end: Nanos) {
    let mut metrics = Metrics::new(plan);
    recorded.merged.all.iter().for_each(|event| metrics.event(event));
    let report = metrics.finish(end);
    let idle = report.metrics.iter().filter(|(name, _)| name.starts_with("sched.idle_while_runnable"));
    for (name, value) in idle {
        json["metrics"][name] = json!(value);
    }
}

fn drift(before: Speed, after: Speed) -> f64 {
    100.0 * (after.steps_per_1024ns / before.steps_per_1024ns - 1.0)
}

/// The application events of all tasks up to `end`, by time.
fn notes(shared: &SharedState, end: Nanos) -> Vec<Event> {
    let made = shared.control.tasks.load(Acquire);
    let of = |id: u32| {
        let slot = &shared.slots[id as usize];
        let tid = slot.tid.load(Relaxed);
        shared.pool.read(&slot.log).map(move |note| note.event(tid))
    };
    let notes: Vec<Event> = (0..made).flat_map(of).filter(|event| event.time <= end).collect();
    notes
}

/// The bandwidth statistics of the groups within the measured time, as events at its end.
fn throttling(measured: &Measured<'_>, groups: &[&str], base: usize) -> Vec<Event> {
    let mut events = Vec::new();
    for (nth, path) in groups.iter().enumerate() {
        let counted = measured.counts.groups.get(*path).copied().unwrap_or_default();
        for (place, count) in counted.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let kind = Kind::Count { pid: 0, metric: (base + nth * CPU_STATS + place) as u16, count };
            events.push(Event::new(measured.ended.at, CpuId(0), kind));
        }
    }
    events
}

/// Thread ids and names of all tasks that ran.
fn names(shared: &SharedState) -> Vec<(i32, String)> {
    let made = shared.control.tasks.load(Acquire);
    let name = |id: u32| {
        let slot = &shared.slots[id as usize];
        let (workload, program) = slot.runs();
        let program = shared.workloads.get(workload)?.programs.get(program)?;
        let name = spec_of(shared, id).map_or(program.name.as_str(), |spec| spec.name.as_str());
        Some((slot.tid.load(Relaxed), name.to_owned())).filter(|(tid, _)| *tid != 0)
    };
    (0..made).filter_map(name).collect()
}

/// Merges both kinds of events by time; at the same instant the kernel's come first.
fn pour(names: &[(i32, String)], notes: &[Event], kernel: &[Event], sink: &mut dyn Sink) {
    names.iter().for_each(|(tid, name)| sink.name(KernelId::FIRST, *tid, name));
    let mut notes = notes.iter().peekable();
    for event in kernel {
        while let Some(note) = notes.next_if(|note| note.time < event.time) {
            sink.event(note);
        }
        sink.event(event);
    }
    notes.for_each(|note| sink.event(note));
}

/// Fills in what is known without scheduler tracepoints: the switches and the CPU time of each task.
fn without_trace(json: &mut Json, measured: &Measured<'_>, why: &str, unavailable: &mut BTreeMap<String, String>) {
    let shared = measured.shared;
    let names: BTreeMap<i32, String> = names(shared).into_iter().collect();
    let counts = &measured.counts.tasks;
    let sum = |field: fn(&crate::counters::TaskCounts) -> u64| counts.values().map(field).sum::<u64>();
    let (voluntary, involuntary) = (sum(|task| task.voluntary), sum(|task| task.involuntary));
    let capacity = json["measured_ns"].as_f64().unwrap_or(0.0) * measured.spec.machine.topology.nr_cpus() as f64;
    let busy = 100.0 * sum(|task| task.cpu_ns) as f64 / capacity.max(1.0);
    let known: &[_] = match counts.is_empty() || shared.real.iter().any(Option::is_some) {
        // The processes of a real program are not counted without a trace.
        true => &[],
        false => &[
            ("sched.voluntary_switches", voluntary as f64),
            ("sched.involuntary_switches", involuntary as f64),
            ("sched.cpu_busy", busy),
        ],
    };
    let of_tasks = shared.workloads.iter().flat_map(|workload| {
        let about_tasks = workload.metrics.iter().filter(|decl| matches!(decl.kind, MetricKind::Tasks(_)));
        about_tasks.map(|decl| format!("{}.{}", workload.name, decl.name))
    });
    unavailable.extend(of_tasks.map(|name| (name, format!("no scheduler trace: {why}"))));
    if let Some(metrics) = json["metrics"].as_object_mut() {
        for (name, value) in metrics.iter_mut().filter(|(name, _)| name.starts_with("sched.")) {
            match known.iter().find(|(known, _)| known == name) {
                Some((_, counted)) => *value = json!(counted),
                None => {
                    unavailable.entry(name.clone()).or_insert_with(|| format!("no scheduler trace: {why}"));
                }
            }
        }
    }
    if let Some(series) = json["series"].as_object_mut() {
        series.retain(|name, _| !name.starts_with("sched."));
    }
    let task = |(id, task): (&u32, &crate::counters::TaskCounts)| {
        let tid = shared.slots[*id as usize].tid.load(Relaxed);
        let name = names.get(&tid).map_or("", String::as_str);
        json!({
            "name": name, "pid": tid, "cpu_ns": task.cpu_ns, "wait_ns": task.wait_ns, "wait_ns_max": null,
            "switches": task.voluntary + task.involuntary, "involuntary_switches": task.involuntary,
            "wakeups": null, "migrations": null,
        })
    };
    list_tasks(json, counts.iter().map(task).collect(), counts.len() as u64);
    json["cpus"] = json!([]);
}

/// How many foreign tasks are listed by name.
const MAX_FOREIGN_LISTED: usize = 10;

/// The noise after the warm-up, in percent of the machine's CPU time.
fn noise(measured: &Measured<'_>, recorded: Option<&Recorded>) -> Json {
    let machine = measured.counts.machine;
    let total = machine.total().max(1) as f64;
    let percent = |ticks: f64| 100.0 * ticks / total;
    let mut noise = json!({
        "interrupts_pct": percent(machine.interrupts as f64),
        "steal_pct": percent(machine.steal as f64),
    });
    let foreign = match recorded {
        Some(Recorded { merged, .. }) => {
            let time =
                (measured.ended.at.saturating_sub(measured.spec.warmup)) as f64 * measured.shared.cpus.len() as f64;
            let share = |ns: Nanos| 100.0 * ns as f64 / time.max(1.0);
            let others: serde_json::Map<String, Json> = merged
                .foreign
                .iter()
                .take(MAX_FOREIGN_LISTED)
                .map(|(name, ns)| (name.clone(), share(*ns).into()))
                .collect();
            json!({
                "foreign_pct": share(merged.foreign.iter().map(|(_, ns)| ns).sum()),
                "foreign_switches": merged.foreign_switches,
                "displaced_by_foreign": merged.displaced,
                "foreign": others,
                "source": "sched_switch; interrupts and steal from /proc/stat",
            })
        }
        _ => {
            let own: u64 = measured.counts.tasks.values().map(|task| task.cpu_ns).sum();
            let foreign = (machine.busy as f64 - own as f64 / 1e7).max(0.0);
            json!({ "foreign_pct": percent(foreign), "source": "/proc/stat, with a resolution of 10 ms" })
        }
    };
    if let (Json::Object(noise), Json::Object(foreign)) = (&mut noise, foreign) {
        noise.extend(foreign);
    }
    noise
}

/// The header of the trace file.
fn header(spec: &RunSpec, plan: &Plan, remark: Option<&str>) -> Header {
    let who = format!("recorded by schedlab-agent {}, seed {}", env!("CARGO_PKG_VERSION"), spec.seed);
    Header {
        kernel: Some(rustix::system::uname().release().to_string_lossy().into_owned()),
        nr_cpus: Some(spec.machine.topology.nr_cpus()),
        metrics: plan.raw_units(),
        comments: std::iter::once(who)
            .chain(remark.map(str::to_owned))
            .chain(plan.queueing().map(|metric| format!("queueing {metric}")))
            .collect(),
    }
}
