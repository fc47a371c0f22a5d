"""From a recorded trace to a prediction for another kernel, with the error of the simulation of the recorded one."""
