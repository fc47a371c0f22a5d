//! Placement and balancing through the public interface: worked examples, and properties under random traffic.

mod asym;
mod balancing;
mod cache_aware;
mod lab;
mod properties;
mod versions;
mod wakeups;
