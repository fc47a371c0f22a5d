//! The cores that a search has already tested.

/// Scratch memory of the core search, allocated once.
#[derive(Clone, Debug, Default)]
pub(crate) struct VisitedCores {
    seen: Vec<u32>,
    round: u32,
}

impl VisitedCores {
    pub(crate) fn start(&mut self, cores: usize) {
        self.round = self.round.wrapping_add(1);
        if self.seen.len() != cores || self.round == 0 {
            self.seen = vec![0; cores];
            self.round = 1;
        }
    }

    pub(crate) fn insert(&mut self, core: usize) {
        self.seen[core] = self.round;
    }

    pub(crate) fn has(&self, core: usize) -> bool {
        self.seen[core] == self.round
    }
}
