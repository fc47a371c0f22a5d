//! Each rule of the fair class on the smallest queue that shows it, with its feature on and off.

mod attributes;
mod cfs;
mod eevdf;
mod lab;
