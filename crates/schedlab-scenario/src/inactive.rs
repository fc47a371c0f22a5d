//! Settings of a scenario that are valid and have no effect on its machine, and objects of which only one side is used.

use schedlab_workload::Workload;
use serde_json::Value as Json;

use crate::one_sided;
use crate::scenario::Scenario;

impl Scenario {
    /// One line for each: the setting, its workload, and what the machine lacks; then the objects.
    pub(crate) fn inactive(&self) -> Vec<String> {
        let Some(first) = self.variants().first() else { return Vec::new() };
        let each = || first.workloads.iter().zip(&self.uses).zip(&self.written);
        let machine = &self.machine;
        let warmth = self.variants().iter().any(|variant| variant.physics.warmth);
        let on = machine.caches.as_ref().filter(|_| warmth);
        let mut lines = Vec::new();
        if on.is_none() {
            let named = each().filter(|((workload, uses), own)| has_own_working_set(workload, uses, own));
            let why = format!("`warmth` is off on machine {}", machine.name);
            lines.extend(line("working-set", named.map(|((workload, _), _)| workload), &why));
        }
        if on.is_none_or(|caches| caches.front_end.is_none()) {
            let named = each().map(|((workload, _), _)| workload);
            let why = match on {
                Some(_) => format!("machine {} states no `front-end` in [caches]", machine.name),
                None => format!("`warmth` is off on machine {}", machine.name),
            };
            lines.extend(line("code", named.filter(|workload| workload.tasks.iter().any(|task| task.code > 0)), &why));
        }
        let programs = each().filter(|((_, uses), _)| *uses == "program");
        lines.extend(programs.flat_map(|((workload, _), _)| one_sided::lines(workload)));
        lines
    }
}

fn line<'a>(key: &str, workloads: impl Iterator<Item = &'a Workload>, why: &str) -> Option<String> {
    let names: Vec<&str> = workloads.map(|workload| workload.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("`{key}` of {} has no effect: {why}", names.join(", ")))
}

/// Whether the scenario states a working set. Those that benchmarks of the catalogue have of their own do not count.
fn has_own_working_set(workload: &Workload, uses: &str, written: &Json) -> bool {
    let steps = uses == "program" && workload.tasks.iter().any(|task| task.working_set > 0);
    steps || written["attributes"].get("working-set").is_some()
}
