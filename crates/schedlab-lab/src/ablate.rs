//! Hybrids of two variants: the first variant with some of the second's differences.

use std::sync::Arc;

use schedlab_policy::Mechanism;
use schedlab_spec::{Guest, Machine, Mechanism as Physical, Physics, RunSpec};
use serde::Serialize;

/// One difference between two variants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// The name of the feature, knob, rule or setting.
    pub name: &'static str,
    /// `feature`, `knob`, `rule`, `setting` or `physics`.
    pub kind: &'static str,
    /// For a rule, the kernel function that it belongs to.
    pub function: Option<&'static str>,
    /// For a rule, the releases that changed it.
    pub since: Option<String>,
    /// The value in the first variant.
    pub a: String,
    /// The value in the second variant.
    pub b: String,
    /// The bundle that it belongs to, if only one of the two variants has that bundle.
    pub within: Option<&'static str>,
}

/// The name of the difference between the variants' task settings.
const TASKS: &str = "tasks";

/// The name of the difference between the variants' guests.
const GUESTS: &str = "guests";

/// The name of the difference between the CPUs that go offline.
const HOTPLUG: &str = "hotplug";

/// The differences between `a` and `b` in the kernel, in the tasks' settings and in the mechanisms of the machine.
#[must_use]
pub fn differences(a: &RunSpec, b: &RunSpec) -> Vec<Difference> {
    let kernel = a.kernel.differences(&b.kernel).into_iter();
    let difference = |found: Mechanism| {
        let Mechanism { name, kind, place, a, b, within, .. } = found;
        let (function, since) = place.unzip();
        Difference { name, kind: kind.name(), function, since, a, b, within }
    };
    let mut all: Vec<Difference> = kernel.map(difference).collect();
    if a.workloads != b.workloads {
        let (a, b) = ("settings of the first variant".to_owned(), "settings of the second variant".to_owned());
        all.push(Difference { name: TASKS, kind: "setting", function: None, since: None, a, b, within: None });
    }
    if !same_guests(a, b) {
        let (a, b) = ("guests of the first variant".to_owned(), "guests of the second variant".to_owned());
        all.push(Difference { name: GUESTS, kind: "setting", function: None, since: None, a, b, within: None });
    }
    if a.hotplug != b.hotplug {
        let (a, b) = ("CPUs of the first variant".to_owned(), "CPUs of the second variant".to_owned());
        all.push(Difference { name: HOTPLUG, kind: "setting", function: None, since: None, a, b, within: None });
    }
    all.extend(physics(&a.machine.physics, &b.machine.physics));
    all
}

fn physics<'a>(a: &'a Physics, b: &'a Physics) -> impl Iterator<Item = Difference> + 'a {
    let state = |physics: &Physics, mechanism| if physics.has(mechanism) { "on" } else { "off" }.to_owned();
    let different = Physical::ALL.into_iter().filter(|mechanism| a.has(*mechanism) != b.has(*mechanism));
    different.map(move |mechanism| Difference {
        name: mechanism.name(),
        kind: "physics",
        function: None,
        since: None,
        a: state(a, mechanism),
        b: state(b, mechanism),
        within: None,
    })
}

/// Whether the guests are alike, their workloads aside.
fn same_guests(a: &RunSpec, b: &RunSpec) -> bool {
    let shown = |spec: &RunSpec| -> Vec<String> {
        let plain = |guest: &Guest| Guest {
            run: RunSpec { workloads: Arc::default(), machine: Arc::clone(&a.machine), ..guest.run.clone() },
            ..guest.clone()
        };
        spec.guests.iter().map(|guest| format!("{:?}", plain(guest))).collect()
    };
    a.guests.len() == b.guests.len() && shown(a) == shown(b)
}

/// Returns `a` with the named differences taken from `b`.
#[must_use]
pub fn hybrid(a: &RunSpec, b: &RunSpec, names: &[&str]) -> RunSpec {
    let workloads = if names.contains(&TASKS) { &b.workloads } else { &a.workloads };
    let guests = if names.contains(&GUESTS) { &b.guests } else { &a.guests };
    let hotplug = Arc::clone(if names.contains(&HOTPLUG) { &b.hotplug } else { &a.hotplug });
    let (kernel, machine) = (a.kernel.with(&b.kernel, names), mixed_machine(&a.machine, &b.machine, names));
    let guests = guests.iter().map(|guest| guest.clone().with_physics(machine.physics)).collect();
    RunSpec { machine, kernel, workloads: Arc::clone(workloads), guests: Arc::new(guests), hotplug, ..a.clone() }
}

/// The machine of `a` with the named mechanisms as in `b`.
fn mixed_machine(a: &Arc<Machine>, b: &Machine, names: &[&str]) -> Arc<Machine> {
    let mut physics = a.physics;
    for mechanism in Physical::ALL.into_iter().filter(|mechanism| names.contains(&mechanism.name())) {
        physics.set(mechanism, b.physics.has(mechanism));
    }
    if physics == a.physics {
        return Arc::clone(a);
    }
    Arc::new(Machine { physics, ..Machine::clone(a) })
}
