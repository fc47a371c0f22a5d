//! The scenario hotplug: requests wait longer while half of the cores are offline, and runs repeat.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use schedlab_lab::run;
use schedlab_scenario::Scenario;

/// The median and the 99th percentile of the requests, and the digest of the run.
fn measured(variant: &str) -> ([f64; 2], String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/hotplug.toml");
    let spec = Scenario::load(&path, None).unwrap().run_spec(variant, 1).unwrap();
    let run = run(&spec, None, &AtomicBool::new(false)).unwrap();
    let of = |stat: &str| run.report.metric(&format!("service.request.{stat}")).unwrap();
    ([of("p50"), of("p99")], run.digest)
}

#[test]
fn requests_wait_longer_on_half_of_the_cores() {
    let ([all, half], again) = (["all", "half"].map(measured), measured("half"));
    assert!(half.0[0] > all.0[0] && half.0[1] > all.0[1], "{all:?} {half:?}");
    assert_eq!(half, again);
}
