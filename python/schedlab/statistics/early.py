"""Imports numpy and scipy while the engine executes runs.

The import takes a third of a second of CPU time, which a comparison would otherwise spend after its last run, when the
other CPUs have nothing left to do. The engine holds no GIL during a run.
"""

from __future__ import annotations

import threading


def import_early() -> threading.Thread:
    """Begin the import in a thread of its own. A later import of the same modules waits for it. If it fails, the later
    import fails, too, and reports the error, so this thread does not."""
    thread = threading.Thread(target=_import, name="import")
    thread.start()
    return thread


def _import() -> None:
    try:
        import scipy.stats  # noqa: F401
    except ImportError:
        pass
