"""How QEMU executes a guest's CPUs. Imports nothing, because the command line names the choices."""

COUNTED = ("-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off")
"""One CPU that counts instructions: its time is repeatable, whatever else the host does."""
EMULATED = ("-accel", "tcg,thread=multi")
"""A thread of the host for each CPU."""
IN_TURN = ("-accel", "tcg,thread=single")
"""One thread of the host runs the CPUs in turn, by the host's clock."""
EMULATIONS = {"threads": EMULATED, "turns": IN_TURN, "counted": COUNTED}
VIRTUAL = ("-accel", "kvm")
