//! Whether a CPU has enough capacity: `fits_capacity`, `capacity_greater`.
//!
//! fits: util * 1280 < capacity * 1024, so that a fifth stays free; greater: by more than 5 %.

/// `fits_capacity`.
pub(crate) fn fits_capacity(util: u64, capacity: u64) -> bool {
    util * 1280 < capacity * 1024
}

/// `capacity_greater`.
pub(crate) fn capacity_greater(a: u64, b: u64) -> bool {
    a * 1024 > b * 1078
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_stays_free() {
        for (util, capacity, fits) in
            [(0, 1, true), (819, 1024, true), (820, 1024, false), (369, 462, true), (370, 462, false)]
        {
            assert_eq!(fits_capacity(util, capacity), fits, "{util} of {capacity}");
        }
        assert!(capacity_greater(1024, 972) && !capacity_greater(1024, 973));
    }
}
