//! What is kept of a run besides its report: from it the slowest samples can be divided without running it again.

use schedlab_spec::RunSpec;

use super::names::Names;
use super::samples::Samples;
use super::{has_quota, Question};

/// The samples of some metrics, and how the CPUs of each kernel were used.
pub struct Kept {
    pub(super) kernels: Vec<String>,
    pub(super) load: Vec<serde_json::Value>,
    pub(super) names: Names,
    pub(super) metrics: Vec<Samples>,
    /// A task of the real-time or the deadline class ran.
    pub(super) not_fair: bool,
}

impl Kept {
    /// The answer to a question, as [`super::tail`] gives it, without `digest`, `events` and `quota`; `None` if too
    /// little was kept for it.
    #[must_use]
    pub(super) fn answer(&self, question: &Question) -> Option<serde_json::Value> {
        let samples = self.metrics.iter().find(|samples| samples.metric == question.metric)?;
        let mut json = samples.json(&question.bands, &self.kernels, &self.names)?;
        json["load"] = self.load.clone().into();
        Some(json)
    }

    /// The answer of [`super::tail`] for a run without guests; `None` if that must repeat the run, because tasks may
    /// have been out of runtime, which no event shows, because the bands do not consist of buckets of the histogram, or
    /// because the metric has too many samples.
    #[must_use]
    pub fn tail(&self, spec: &RunSpec, question: &Question, digest: &str, events: u64) -> Option<serde_json::Value> {
        if self.not_fair || has_quota(spec) || !spec.guests.is_empty() {
            return None;
        }
        let mut json = self.answer(question)?;
        json["digest"] = digest.into();
        json["events"] = events.into();
        json["quota"] = false.into();
        Some(json)
    }
}
