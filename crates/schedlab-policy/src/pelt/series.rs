//! The geometric series itself: `y^32 = 1/2`, tabulated (kernel/sched/sched-pelt.h, `decay_load`).

/// A CPU or task that runs all the time (`SCHED_CAPACITY_SCALE`).
pub const CAPACITY_SCALE: u64 = 1 << CAPACITY_SHIFT;
/// log2 of it.
pub const CAPACITY_SHIFT: u32 = 10;
/// Largest sum of the series: 1024 * (1 + y + y^2 + ...), rounded as the kernel rounds.
pub const LOAD_AVG_MAX: u64 = 47_742;
/// What the sum of an always-on signal is at the start of a segment.
pub const PELT_MIN_DIVIDER: u64 = LOAD_AVG_MAX - 1024;

/// Segments that halve a value.
const LOAD_AVG_PERIOD: u64 = 32;

/// `2^32 * y^n` (`runnable_avg_yN_inv`).
const Y_POWERS: [u32; 32] = [
    0xffffffff, 0xfa83b2da, 0xf5257d14, 0xefe4b99a, 0xeac0c6e6, 0xe5b906e6, 0xe0ccdeeb, 0xdbfbb796, 0xd744fcc9,
    0xd2a81d91, 0xce248c14, 0xc9b9bd85, 0xc5672a10, 0xc12c4cc9, 0xbd08a39e, 0xb8fbaf46, 0xb504f333, 0xb123f581,
    0xad583ee9, 0xa9a15ab4, 0xa5fed6a9, 0xa2704302, 0x9ef5325f, 0x9b8d39b9, 0x9837f050, 0x94f4efa8, 0x91c3d373,
    0x8ea4398a, 0x8b95c1e3, 0x88980e80, 0x85aac367, 0x82cd8698,
];

/// `decay_load`: `value * y^segments`.
#[inline]
pub(super) fn decay_load(value: u64, segments: u64) -> u64 {
    if segments > LOAD_AVG_PERIOD * 63 {
        return 0;
    }
    let halved = value >> (segments / LOAD_AVG_PERIOD);
    let power = Y_POWERS[(segments % LOAD_AVG_PERIOD) as usize];
    ((u128::from(halved) * u128::from(power)) >> 32) as u64
}

/// `__accumulate_pelt_segments`: what an on-signal adds that filled the rest of a segment, the whole ones after it, and
/// part of the current one.
#[inline]
pub(super) fn __accumulate_pelt_segments(segments: u64, rest_of_first: u64, current: u64) -> u64 {
    let whole = LOAD_AVG_MAX - decay_load(LOAD_AVG_MAX, segments) - 1024;
    decay_load(rest_of_first, segments) + whole + current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_the_floor_of_their_formula() {
        for (n, power) in Y_POWERS.iter().enumerate() {
            let exact = (2f64.powi(32) - 1.0) * 0.5f64.powf(n as f64 / 32.0);
            assert!((f64::from(*power) - exact).abs() <= 1.0, "y^{n}");
        }
    }

    #[test]
    fn decay_follows_real_numbers_and_ends() {
        for value in [0, 1, 1024, LOAD_AVG_MAX, u64::from(u32::MAX), 1 << 50, u64::MAX] {
            for n in [0, 1, 31, 32, 33, 64, 500, 2016, 2017, u64::MAX] {
                let exact = value as f64 * 0.5f64.powf(n as f64 / 32.0);
                let off = (decay_load(value, n) as f64 - exact).abs();
                assert!(off <= 2.0 + exact * 1e-8, "{value} after {n}: {}", decay_load(value, n));
            }
        }
    }

    #[test]
    fn a_full_signal_sums_to_the_maximum() {
        assert_eq!(
            __accumulate_pelt_segments(1, 1024, 0),
            decay_load(1024, 1) + LOAD_AVG_MAX - decay_load(LOAD_AVG_MAX, 1) - 1024
        );
        assert_eq!(__accumulate_pelt_segments(3000, 7, 5), PELT_MIN_DIVIDER + 5);
    }
}
