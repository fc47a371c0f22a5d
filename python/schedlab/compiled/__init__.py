"""The scheduler of a kernel's source tree as a program in user space: built, checked, and compared with a row."""
