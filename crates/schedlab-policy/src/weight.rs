//! Load weights and the kernel's fixed-point division by them (`prio_to_weight`, `__calc_delta`, kernel/sched/core.c
//! and fair.c).
//!
//! # What `calc_delta` computes
//!
//! Everything that depends on weights is a rule of three: a time `x` times a weight `w` divided by a weight `L`.
//! vruntime is `x * 1024 / L` (wall time at the speed of a nice-0 task), a CFS slice is `period * w / L`. A 64-bit
//! division at every charge used to be expensive, so kernels multiply by an inverse instead: with `inv = 2^32 / L`,
//! rounded down,
//!
//! ```text
//! x * w / L  =  x * (w * inv) / 2^32        approximately
//! ```
//!
//! `inv` is tabulated for the weights of nice values and computed on demand for sums. The factor `F = w * inv` must fit
//! 32 bits to be multiplied by a 64-bit `x` without overflow. If it does not, it is shifted right by `s` bits and the
//! final shift is `32 - s`; the bits shifted out, and the rounding of `inv`, are the error, about one part in 2^22 for
//! the usual weights. 7.x divides on 64 bits instead: `floor(x * w / L)`, with weights at full resolution, exact as
//! long as `x * w` does not wrap.
//!
//! Weights have 10 more bits than the table on 64-bit kernels (full resolution), so that the shares of groups do not
//! round to nothing; `scale_load_down` takes them away again.

use crate::FairPolicy;

/// 64-bit kernels keep weights at this many more bits than the table.
pub const FIXEDPOINT_SHIFT: u32 = 10;
/// Weight of nice 0 at full resolution.
pub const NICE_0_LOAD: u64 = 1 << 20;

/// A weight and its cached inverse (`struct load_weight`); `inv` 0 means not computed yet.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LoadWeight {
    /// Weight at full resolution.
    pub weight: u64,
    /// About 2^32 / (weight >> 10).
    pub inv: u32,
    /// Divided by as it is, not multiplied by `inv`.
    pub divides: bool,
}

const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, // -20..=-11
    9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277, // -10..=-1
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, // 0..=9
    110, 87, 70, 56, 45, 36, 29, 23, 18, 15, // 10..=19
];

const INVERSES: [u32; 40] = [
    48388, 59856, 76040, 92818, 118348, 147320, 184698, 229616, 287308, 360437, //
    449829, 563644, 704093, 875809, 1099582, 1376151, 1717300, 2157191, 2708050, 3363326, //
    4194304, 5237765, 6557202, 8165337, 10153587, 12820798, 15790321, 19976592, 24970740, 31350126, //
    39045157, 49367440, 61356676, 76695844, 95443717, 119304647, 148102320, 186737708, 238609294, 286331153,
];

const IDLE_WEIGHT: u32 = 3;
const IDLE_INVERSE: u32 = 1_431_655_765;

impl LoadWeight {
    /// The weight of a task (`set_load_weight`). Nice values outside -20..=19 are cut to it.
    #[must_use]
    pub fn of_task(nice: i8, policy: FairPolicy) -> Self {
        let row = (nice.clamp(-20, 19) + 20) as usize;
        let (weight, inv) = match policy {
            FairPolicy::Idle => (IDLE_WEIGHT, IDLE_INVERSE),
            FairPolicy::Normal | FairPolicy::Batch => (WEIGHTS[row], INVERSES[row]),
        };
        LoadWeight { weight: u64::from(weight) << FIXEDPOINT_SHIFT, inv, divides: false }
    }

    /// The same weight, in a kernel that divides by weights or one that does not.
    #[must_use]
    pub fn dividing(self, divides: bool) -> Self {
        LoadWeight { divides, ..self }
    }

    /// A sum of weights, inverse computed when needed.
    #[must_use]
    pub fn of_sum(weight: u64) -> Self {
        LoadWeight { weight, inv: 0, divides: false }
    }

    /// The weight at table resolution (`scale_load_down`).
    #[inline]
    #[must_use]
    pub fn scaled(self) -> u64 {
        scale_load_down(self.weight)
    }

    /// About 2^32 / weight, from the table or computed (`__update_inv_weight`).
    #[inline]
    #[must_use]
    pub fn inverse(self) -> u32 {
        if self.inv != 0 {
            return self.inv;
        }
        match self.scaled() {
            0 => u32::MAX,
            w if w >= u64::from(u32::MAX) => 1,
            w => (u64::from(u32::MAX) / w) as u32,
        }
    }
}

/// `scale_load_down`: a weight that is not 0 stays at least 2.
#[inline]
#[must_use]
pub fn scale_load_down(weight: u64) -> u64 {
    if weight == 0 {
        0
    } else {
        (weight >> FIXEDPOINT_SHIFT).max(2)
    }
}

/// `delta * weight / load` (`__calc_delta`); `weight` is at full resolution and is scaled down here.
#[inline(never)]
#[must_use]
pub fn calc_delta(delta: u64, weight: u64, load: &LoadWeight) -> u64 {
    if load.divides {
        return delta.wrapping_mul(weight) / load.weight.max(1);
    }
    let mut shift = 32;
    let mut factor = scale_load_down(weight);
    let excess = bits_above_32(factor);
    factor >>= excess;
    shift -= excess as i32;
    factor = (factor as u32 as u64) * u64::from(load.inverse());
    let excess = bits_above_32(factor);
    factor >>= excess;
    shift -= excess as i32;
    mul_u64_u32_shr(delta, factor as u32, shift)
}

/// `calc_delta_fair`: wall time to virtual time.
#[inline]
#[must_use]
pub fn calc_delta_fair(delta: u64, load: &LoadWeight) -> u64 {
    if load.weight == NICE_0_LOAD {
        delta
    } else {
        calc_delta(delta, NICE_0_LOAD, load)
    }
}

/// How far a factor must be shifted to fit 32 bits.
#[inline]
fn bits_above_32(factor: u64) -> u32 {
    32 - ((factor >> 32) as u32).leading_zeros()
}

/// `(a * mul) >> shift` in 128 bits, cut to 64; a shift below 0 cannot come from weights the kernel allows.
#[inline]
fn mul_u64_u32_shr(a: u64, mul: u32, shift: i32) -> u64 {
    ((u128::from(a) * u128::from(mul)) >> shift.max(0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nice(nice: i8) -> LoadWeight {
        LoadWeight::of_task(nice, FairPolicy::Normal)
    }

    /// 7.x multiplies in 64 bits before it divides: a span of more than 2^44 ns (4.9 h) at another weight than that of
    /// nice 0 wraps around. Earlier kernels multiply in 128 bits.
    #[test]
    fn spans_of_hours_wrap_as_in_the_kernel() {
        let (hours, lost) = ((1u64 << 44) + 335, 335 * NICE_0_LOAD / nice(5).weight);
        assert_eq!(calc_delta_fair(hours, &nice(5).dividing(true)), lost);
        assert_eq!(calc_delta_fair(hours, &nice(0).dividing(true)), hours);
        let exact = (u128::from(hours) * 1024 / 335) as u64;
        assert!(calc_delta_fair(hours, &nice(5)).abs_diff(exact) < exact >> 20);
    }

    /// As Debian's 7.2.13 charged, where the multiplication misses by one in either direction.
    #[test]
    fn division_is_exact() {
        for (level, wall, divided, multiplied) in
            [(5, 3_203_005, 9_790_677, 9_790_678), (19, 674_835, 46_068_736, 46_068_735), (0, 7, 7, 7)]
        {
            assert_eq!(calc_delta_fair(wall, &nice(level).dividing(true)), divided, "nice {level}");
            assert_eq!(calc_delta_fair(wall, &nice(level)), multiplied, "nice {level}");
        }
    }

    #[test]
    fn virtual_time_of_a_millisecond() {
        for (level, virtual_ns) in [
            (-20, 11_536),
            (-10, 107_247),
            (-5, 328_099),
            (-1, 801_879),
            (0, 1_000_000),
            (1, 1_248_780),
            (5, 3_056_716),
            (10, 9_309_090),
            (19, 68_266_666),
        ] {
            assert_eq!(calc_delta_fair(1_000_000, &nice(level)), virtual_ns, "nice {level}");
        }
        assert_eq!(calc_delta_fair(1_000_000, &LoadWeight::of_task(0, FairPolicy::Idle)), 341_333_333);
        assert_eq!(LoadWeight::of_task(0, FairPolicy::Batch), nice(0));
    }

    #[test]
    fn a_share_of_a_summed_weight() {
        assert_eq!(calc_delta(24_000_000, NICE_0_LOAD, &LoadWeight::of_sum(2 * NICE_0_LOAD)), 11_999_994);
    }

    #[test]
    fn inverses_are_rounded_but_for_four() {
        let floored = [56, 45, 29, 23];
        for (weight, inverse) in WEIGHTS.iter().zip(INVERSES) {
            let half = if floored.contains(weight) { 0 } else { u64::from(*weight) / 2 };
            assert_eq!(u64::from(inverse), ((1 << 32) + half) / u64::from(*weight), "weight {weight}");
        }
        assert_eq!(u64::from(IDLE_INVERSE), (1 << 32) / u64::from(IDLE_WEIGHT));
    }

    #[test]
    fn extreme_weights_have_an_inverse() {
        for (weight, inverse) in [(0, u32::MAX), (1 << 10, u32::MAX / 2), (u64::MAX, 1), (1 << 20, u32::MAX / 1024)] {
            assert_eq!(LoadWeight::of_sum(weight).inverse(), inverse, "weight {weight}");
        }
    }

    proptest! {
        /// Against the definition in 128 bits: shift the factor until it fits, multiply, shift back.
        #[test]
        fn calc_delta_is_the_shifted_product(
            delta in 0u64..1 << 40,
            weight in 1u64..1 << 40,
            load in 1u64..1 << 45,
        ) {
            let load = LoadWeight::of_sum(load);
            let (mut factor, mut shift) = (u128::from(scale_load_down(weight)), 32u32);
            let cut = |factor: &mut u128, shift: &mut u32| while *factor >> 32 != 0 {
                *factor >>= 1;
                *shift -= 1;
            };
            cut(&mut factor, &mut shift);
            factor *= u128::from(load.inverse());
            cut(&mut factor, &mut shift);
            let exact = (u128::from(delta) * factor) >> shift;
            prop_assert_eq!(calc_delta(delta, weight, &load), exact as u64);
        }

        /// The fixed point stays within a ten-thousandth of the true quotient, or one unit, for a task's weight.
        #[test]
        fn calc_delta_is_close_to_the_quotient(delta in 0u64..1 << 40, level in -20i8..20) {
            let load = nice(level);
            let exact = u128::from(delta) * u128::from(NICE_0_LOAD) / u128::from(load.weight);
            let error = u128::from(calc_delta_fair(delta, &load)).abs_diff(exact);
            prop_assert!(error <= exact / 10_000 + 1, "{error} of {exact}");
        }
    }
}
