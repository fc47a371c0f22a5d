"""The model error of the simulator, measured against real kernels by kind of metric and kind of machine.

A comparison of simulated variants shows them beside its own intervals. An interval says how certain a change is in the
model; the model error says how far changes in the model have been from changes on a kernel.
"""

from schedlab.validity.checked import Evidence, evidence
from schedlab.validity.errors import ModelError, Validated, model_errors, validated
from schedlab.validity.rows import family_of

__all__ = ["Evidence", "ModelError", "Validated", "evidence", "family_of", "model_errors", "validated"]
