//! A report as text.

use std::fmt;

use crate::inputs::InputGroup;
use crate::report::{
    BalanceMiss, BalanceReport, Delays, Disagreement, Part, PlacementMiss, PlacementReport, Report, ReschedMiss,
    ReschedReport, Score, StateMiss, StateScores, Unexplained,
};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        head(self, f)?;
        writeln!(f, "\n  decision              judged    agree    share   95% interval")?;
        line(f, "contested picks", &self.picks)?;
        line(f, "preemptions", &self.preemptions)?;
        for part in self.kinds.iter().chain(&self.cpus).chain(&self.nice) {
            line(f, &format!("  {}", title(part)), &part.score)?;
        }
        writeln!(f, "  baselines")?;
        line(f, "  picks, FIFO", &self.baselines.fifo)?;
        line(f, "  picks, LIFO", &self.baselines.lifo)?;
        line(f, "  picks, keep running", &self.baselines.keep_running)?;
        line(f, "  picks, lowest pid", &self.baselines.lowest_pid)?;
        line(f, "  never preempt", &self.baselines.never_preempts)?;
        placements(&self.placements, f)?;
        balances(&self.balances, f)?;
        resched(&self.resched, f)?;
        foot(self, f)?;
        self.disagreements.iter().try_for_each(|disagreement| disagreement.fmt(f))
    }
}

fn head(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let trace = &report.trace;
    if !report.missing.is_empty() {
        writeln!(f, "unreliable: the trace lacks {}", report.missing.join(", "))?;
    }
    let Unexplained { picks, preemptions } = report.unexplained;
    if picks + preemptions > 0 {
        let all = picks + preemptions;
        writeln!(f, "unreliable: no lag was found that explains {all} decisions; they are not judged")?;
    }
    let kernel = trace.kernel.as_deref().unwrap_or("an unknown kernel");
    let seconds = trace.span_ns as f64 / 1e9;
    writeln!(f, "{} records of {kernel}, {} CPUs, {seconds:.3} s", trace.records, trace.cpus)?;
    match report.recorded_row {
        Some(row) if row == report.row => writeln!(f, "row {row}, the row of this kernel")?,
        Some(row) => writeln!(f, "row {}; the row of this kernel is {row}", report.row)?,
        None => writeln!(f, "row {}; the row of this kernel: row not modelled yet", report.row)?,
    }
    if report.recorded_row == Some(report.row) {
        report.refused.iter().try_for_each(|word| writeln!(f, "warning: {word}"))?;
    }
    if trace.sessions && trace.grouped == 0 {
        writeln!(f, "warning: sessions are groups; tasks present at the start are assumed to be in no session")?;
    }
    if trace.lost > 0 {
        writeln!(f, "warning: the recorder lost {} events; queues were started anew there", trace.lost)?;
    }
    if trace.wakeups_placed > 0 {
        writeln!(
            f,
            "note: the trace has no sched_wakeup; the ends of {} wakeups were placed by the records around them",
            trace.wakeups_placed
        )?;
    }
    Ok(())
}

fn placements(report: &PlacementReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if report.all.decisions == 0 {
        return Ok(());
    }
    writeln!(f, "  placements, where several CPUs were allowed")?;
    line(f, "placements", &report.all)?;
    report.kinds.iter().try_for_each(|part| line(f, &format!("  {}", part.name), &part.score))?;
    line(f, "  wakeup, not prev", &report.moved)?;
    for part in &report.rules {
        line(f, &format!("  by {}", part.name), &part.score)?;
    }
    let baselines = &report.baselines;
    for (name, score) in
        [("prev", &baselines.prev), ("lowest idle", &baselines.lowest_idle), ("waker", &baselines.waker)]
    {
        line(f, &format!("  always {name}"), score)?;
    }
    for (name, score) in
        [("histories equal", &report.histories), ("task loads", &report.task_loads), ("CPU loads", &report.cpu_loads)]
    {
        line(f, &format!("  {name}"), score)?;
    }
    for part in &report.unjudged {
        writeln!(f, "  {} {} not judged: {}", part.count, part.kind, part.reason)?;
    }
    for miss in &report.disagreements {
        let PlacementMiss { time_ns, pid, kind, kernel, model, rule, .. } = miss;
        writeln!(f, "  {:.6} {kind} of {pid}: kernel CPU {kernel}, model CPU {model} ({rule})", *time_ns as f64 / 1e9)?;
    }
    Ok(())
}

fn resched(report: &ReschedReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let unjudged: u64 = report.unjudged.iter().map(|part| part.count).sum();
    let (Some(model), true) = (report.model, report.all.decisions + unjudged > 0) else { return Ok(()) };
    writeln!(f, "  requests to reschedule, preempt={model}")?;
    line(f, "honoured as predicted", &report.all)?;
    let us = |delays: &Delays| {
        let [p50, p99, max] = [delays.p50_ns, delays.p99_ns, delays.max_ns].map(|ns| ns as f64 / 1e3);
        format!("{p50:.1} {p99:.1} {max:.1}")
    };
    for place in &report.places {
        line(f, &format!("  {}", place.name), &place.score)?;
        let Some(recorded) = &place.recorded else { continue };
        let predicted = place.predicted.as_ref().map_or_else(|| "not shown".to_owned(), us);
        writeln!(f, "    delay, p50 p99 max in us: predicted {predicted}, recorded {}", us(recorded))?;
    }
    for part in &report.unjudged {
        writeln!(f, "  {} requests not judged: {}", part.count, part.reason)?;
    }
    for miss in &report.disagreements {
        let ReschedMiss { time_ns, cpu, requested_ns, lazy, kernel, model } = miss;
        let kind = if *lazy { "lazy" } else { "full" };
        let (time, requested) = (*time_ns as f64 / 1e9, *requested_ns as f64 / 1e9);
        writeln!(f, "  {time:.6} CPU {cpu}, {kind} request of {requested:.6}: kernel {kernel}, model {model}")?;
    }
    Ok(())
}

fn balances(report: &BalanceReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if report.all.decisions + report.quiet == 0 {
        return Ok(());
    }
    writeln!(f, "  balancing passes that found an imbalance ({} others did not)", report.quiet)?;
    line(f, "balances", &report.all)?;
    report.kinds.iter().try_for_each(|part| line(f, &format!("  {}", part.name), &part.score))?;
    line(f, "  same source", &report.source)?;
    line(f, "  task loads", &report.task_loads)?;
    if report.preferences.decisions > 0 {
        line(f, "  preferred caches", &report.preferences)?;
    }
    line(f, "  one task from the busiest CPU", &report.baselines.most_tasks)?;
    line(f, "  never", &report.baselines.never)?;
    for part in &report.unjudged {
        writeln!(f, "  {} {} not judged: {}", part.count, part.kind, part.reason)?;
    }
    for miss in &report.disagreements {
        let BalanceMiss { time_ns, kind, cpu, kernel, model, imbalance, failed, queues } = miss;
        let imbalance = imbalance.map_or(String::new(), |(unit, left)| format!(", {unit} {left} left"));
        writeln!(
            f,
            "  {:.6} {kind} cpu{cpu}: kernel {kernel}, model {model} ({failed} failures{imbalance}); {}",
            *time_ns as f64 / 1e9,
            queues.join("; ")
        )?;
    }
    Ok(())
}

fn foot(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let steps = &report.vruntime;
    writeln!(
        f,
        "vruntime: {} of {} steps equal to the ns, {} of the values",
        steps.equal, steps.compared, steps.absolute
    )?;
    for step in steps.first.iter().take(3) {
        let (seconds, off) = (step.time_ns as f64 / 1e9, step.model_step.wrapping_sub(step.kernel_step));
        writeln!(
            f,
            "  {seconds:.6} pid {}: kernel {:+}, model {:+} ({off:+})",
            step.pid, step.kernel_step, step.model_step
        )?;
    }
    if report.state.events.decisions > 0 {
        state(&report.state, f)?;
    }
    let share = 100.0 * report.unjudged_share;
    let warm_up = report.warm_up_ns as f64 / 1e6;
    writeln!(f, "unjudged: {share:.2}% (after a warm-up of {warm_up} ms with {} decisions)", report.in_warm_up)?;
    for part in &report.unjudged {
        writeln!(f, "  {} {}: {}", part.count, part.kind, part.reason)?;
    }
    writeln!(f, "no decision: {} preempt checks with need-resched set already", report.not_asked)?;
    writeln!(f, "tasks: {} seen", report.tasks.seen)?;
    for (group, title) in [
        (InputGroup::State, "state taken from the trace"),
        (InputGroup::StateAgain, "state taken again"),
        (InputGroup::Operation, "other inputs"),
    ] {
        let all = report.inputs.iter().filter(|input| input.group == group);
        let named: Vec<String> = all.map(|input| format!("{} {}", input.count, input.name)).collect();
        writeln!(f, "{title}: {}", if named.is_empty() { "none".to_owned() } else { named.join(", ") })?;
    }
    let looks: Vec<String> = report.look_ahead.iter().map(|look| format!("{} {}", look.records, look.name)).collect();
    writeln!(f, "records for which later ones were consulted: {}", looks.join(", "))?;
    if report.tasks.guessed > 0 {
        writeln!(
            f,
            "warning: no record shows a task's state; {} tasks are assumed to have slept for long",
            report.tasks.guessed
        )?;
    }
    if report.tasks.solved > 0 {
        writeln!(f, "no record shows a task's state: {} lags solved for from decisions", report.tasks.solved)?;
    }
    if report.desyncs > 0 {
        writeln!(f, "desync: the trace had a task on another CPU or queue than the model {} times", report.desyncs)?;
    }
    Ok(())
}

fn state(state: &StateScores, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let StateScores { events, vruntime, deadline, lag, zero, sum, weight, count, first } = state;
    write!(f, "state: {} of {} events equal to the ns", events.agreed, events.decisions)?;
    let fields = [("vruntime", vruntime), ("deadline", deadline), ("lag", lag), ("zero", zero), ("sum", sum)];
    for (name, score) in fields.into_iter().chain([("weight", weight), ("count", count)]) {
        write!(f, ", {name} {} of {}", score.agreed, score.decisions)?;
    }
    writeln!(f)?;
    for miss in first.iter().take(3) {
        let (seconds, off) = (miss.time_ns as f64 / 1e9, miss.model.wrapping_sub(miss.kernel));
        let StateMiss { cpu, pid, event, what, kernel, .. } = miss;
        writeln!(f, "  {seconds:.6} cpu{cpu} pid {pid} {event}: {what} is {kernel}, model off by {off:+}")?;
    }
    Ok(())
}

fn title(part: &Part) -> String {
    match part.name == part.of {
        true => part.name.clone(),
        false => format!("{} {}", part.name, part.of),
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, score: &Score) -> fmt::Result {
    let Score { decisions, agreed, share, low, high } = *score;
    if decisions == 0 {
        return writeln!(f, "  {name:<20} {decisions:>7}");
    }
    let [share, low, high] = [share, low, high].map(|part| 100.0 * part);
    writeln!(f, "  {name:<20} {decisions:>7}  {agreed:>7}  {share:>6.2}%  {low:.2}..{high:.2}%")
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Disagreement { cpu, kind, kernel, model, .. } = self;
        let seconds = self.time_ns as f64 / 1e9;
        writeln!(f, "\n{seconds:.6} cpu{cpu} {kind}: kernel {kernel}, model {model}")?;
        if let Some(rule) = self.rule {
            let feature = self.feature.map(|feature| format!(" [{feature}]")).unwrap_or_default();
            let numbers: Vec<String> = self.compared.iter().map(|(name, n)| format!("{name} {n}")).collect();
            writeln!(f, "  rule: {rule}{feature}; {}", numbers.join(", "))?;
        }
        let v = self.avg_vruntime.map(|v| format!(", V {v}")).unwrap_or_default();
        writeln!(f, "  queue from min_vruntime {}{v}:", self.min_vruntime)?;
        writeln!(f, "    {:<22} nice          v        lag   deadline      slice        ran   kernel's v", "task")?;
        for task in &self.queue {
            let name = format!("{}-{}{}", task.name, task.pid, if task.running { " *" } else { "" });
            let mark = if task.asleep {
                " asleep"
            } else if task.known {
                ""
            } else {
                " guessed"
            };
            let or_dash = |number: Option<i64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
            let from_zero = |v: Option<u64>| or_dash(v.map(|v| v.wrapping_sub(self.min_vruntime) as i64));
            writeln!(
                f,
                "    {name:<22} {:>4} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12}{mark}",
                task.nice,
                task.key,
                or_dash(task.lag),
                from_zero(task.deadline),
                task.slice,
                task.ran,
                from_zero(task.kernel_vruntime),
            )?;
        }
        Ok(())
    }
}

/// The scores of one trace under several rows, as a table; the recorded kernel's row is marked.
#[must_use]
pub fn matrix_table(reports: &[Report]) -> String {
    let mut text = format!("{:<10} {:>9} {:>9} {:>12} {:>9}\n", "row", "picks", "agree", "preemptions", "agree");
    for report in reports {
        let mark = if report.recorded_row == Some(report.row) { " <- recorded" } else { "" };
        let (picks, preemptions) = (&report.picks, &report.preemptions);
        text += &format!(
            "{:<10} {:>9} {:>8.2}% {:>12} {:>8.2}%{mark}\n",
            report.row,
            picks.decisions,
            100.0 * picks.share,
            preemptions.decisions,
            100.0 * preemptions.share
        );
    }
    if reports.iter().all(|report| report.recorded_row.is_none()) {
        text += "the recorded kernel: row not modelled yet\n";
    }
    text
}
