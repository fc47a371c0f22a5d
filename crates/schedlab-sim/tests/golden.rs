//! The golden traces of two hogs, through the whole simulator: one CPU of eight (scaling factor 4), no costs, no noise.

use crate::support::{flat, kernel, record, spec, tasks};
use schedlab_model::{MSEC, SEC};
use schedlab_workload::{Amount, Op};

/// Both hogs wake at `wake` ms from one timer interrupt, so that they are placed as wakees.
fn hogs(version: &str, hz: u32, nices: [i8; 2]) -> Vec<String> {
    let hog = || vec![Op::Sleep(Amount::Fixed(0)), Op::Run(Amount::Fixed(SEC))];
    let mut workload = tasks(vec![("A", nices[0], Some(0), hog()), ("B", nices[1], Some(0), hog())]);
    workload.tasks.iter_mut().for_each(|task| task.timer_slack = 0);
    let mut config = kernel(version, 8, hz);
    if version == "6.1" {
        // The traces begin with equal vruntimes; a fork's debit would push the second hog back.
        config.set_feature("START_DEBIT", false).unwrap();
    }
    let mut spec = spec(flat(8, 0), config, vec![workload]);
    spec.duration = 75 * MSEC;
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    let runs = record.runs_on(0);
    // What happens within the first millisecond is the start-up: forks and sleeps at time 0.
    let first = runs.iter().rposition(|run| run.ends_with("A0") || run.ends_with("B0")).unwrap();
    runs[first..].to_vec()
}

#[test]
fn two_hogs_switch_when_the_kernel_does() {
    let cases: [(&str, u32, [i8; 2], &str); 8] = [
        ("6.1", 250, [0, 0], "A0 B12 A24 B36"),
        ("6.1", 1000, [0, 0], "A0 B12 A24 B36"),
        ("6.1", 250, [0, 5], "A0 B20 A28 B48 A56"),
        ("6.1", 1000, [0, 5], "A0 B19 A26 B45 A51 B70"),
        ("6.12.0", 250, [0, 0], "A0 B4 A8 B12 A16"),
        ("6.12.0", 1000, [0, 0], "A0 B3 A6 B9 A12"),
        ("6.12.0", 250, [0, 5], "A0 B4 A8 B20 A24 B36"),
        ("6.12.0", 1000, [0, 5], "A0 B3 A7 B17 A21 B33"),
    ];
    let mut wrong = Vec::new();
    for (version, hz, nices, want) in cases {
        let got = hogs(version, hz, nices);
        let want: Vec<&str> = want.split(' ').collect();
        if got.len() < want.len() || got[..want.len()] != want[..] {
            wrong.push(format!("{version} HZ={hz} nice {nices:?}: want {want:?}, got {:?}", &got[..got.len().min(12)]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
