//! What programs call in the kernel that runs them.

use crate::memory::Memory;

/// What a function of the kernel does when a program calls it.
pub trait Kernel {
    /// Calls the function of the kernel. The error is a message that ends the scheduler.
    ///
    /// # Errors
    /// The function is not modelled, or was called wrongly.
    fn kfunc(&mut self, memory: &mut Memory, name: &str, args: [u64; 5]) -> Result<u64, String>;

    /// The clock in ns.
    fn now(&self) -> u64;

    /// The CPU that executes the program.
    fn cpu(&self) -> usize;

    /// The address of the running task (`current`); 0 if there is none.
    fn current(&self) -> u64;

    /// A random number.
    fn random(&mut self) -> u32;
}
