//! The frequencies at which the CPUs of a machine can run.

use schedlab_model::Nanos;

/// Frequencies, in MHz.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frequency {
    /// That at which the machine's costs hold.
    pub base: u32,
    /// The lowest.
    pub min: u32,
    /// The highest while at most so many cores of a node are busy; the counts rise, and the last one holds for more
    /// cores, too.
    pub turbo: Vec<(u32, u32)>,
    /// The shortest time between two changes by the governor schedutil (`rate_limit_us`).
    pub rate_limit: Nanos,
}

impl Frequency {
    /// The highest while so many cores of a node are busy.
    #[must_use]
    pub fn limit(&self, busy_cores: u32) -> u32 {
        let bin = self.turbo.iter().find(|(cores, _)| busy_cores <= *cores).or(self.turbo.last());
        bin.map_or(self.base, |(_, mhz)| *mhz)
    }

    /// The highest of all (`cpuinfo_max_freq`).
    #[must_use]
    pub fn max(&self) -> u32 {
        self.turbo.iter().map(|(_, mhz)| *mhz).max().unwrap_or(self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bin_of_the_last_count_holds_for_more_cores() {
        let turbo = vec![(2, 3800), (4, 3600), (8, 3200)];
        let frequency = Frequency { base: 2500, min: 1000, turbo, rate_limit: 0 };
        let found = [0, 1, 2, 3, 4, 5, 8, 28].map(|cores| frequency.limit(cores));
        assert_eq!(found, [3800, 3800, 3800, 3600, 3600, 3200, 3200, 3200]);
        assert_eq!(frequency.max(), 3800);
        assert_eq!(Frequency { turbo: Vec::new(), ..frequency }.limit(1), 2500);
    }
}
