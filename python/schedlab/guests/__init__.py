"""Kernels in QEMU: which image, what file system, how QEMU is called and watched; for `record` and the vm arm."""
