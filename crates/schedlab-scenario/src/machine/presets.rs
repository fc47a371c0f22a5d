//! The shipped machines, embedded into the program.

/// The id of the machine whose topology is that of the running system.
pub(crate) const HOST: &str = "host";

const PRESETS: &[(&str, &str)] = &[
    ("rpi4", include_str!("../../../../machines/rpi4.toml")),
    ("laptop-8", include_str!("../../../../machines/laptop-8.toml")),
    ("hikey960", include_str!("../../../../machines/hikey960.toml")),
    ("xeon-1s26c-smt2", include_str!("../../../../machines/xeon-1s26c-smt2.toml")),
    ("xeon-2s16c-smt2", include_str!("../../../../machines/xeon-2s16c-smt2.toml")),
    ("xeon-2s28c-smt2", include_str!("../../../../machines/xeon-2s28c-smt2.toml")),
    ("xeon-2s32c-smt2", include_str!("../../../../machines/xeon-2s32c-smt2.toml")),
    ("power9-176", include_str!("../../../../machines/power9-176.toml")),
    ("xeon-2s56c-smt2", include_str!("../../../../machines/xeon-2s56c-smt2.toml")),
    ("power10-480", include_str!("../../../../machines/power10-480.toml")),
];

/// The ids of the presets, smallest machine first, without [`HOST`].
pub(crate) fn preset_ids() -> Vec<&'static str> {
    PRESETS.iter().map(|(id, _)| *id).collect()
}

/// The text of a preset or of [`HOST`].
pub(crate) fn text_of(id: &str) -> Option<&'static str> {
    if id == HOST {
        return Some(include_str!("../../../../machines/host.toml"));
    }
    PRESETS.iter().find(|(name, _)| *name == id).map(|(_, text)| *text)
}
