# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A small study: the base slice and the latency of a timer
#
# A scenario is built in code, a knob is overridden value by value, and each value is judged against the default on the same seeds.

# %%
import pandas

import schedlab

document = {
    "machine": "laptop-8",
    "duration": "120ms",
    "seeds": 6,
    "workload": [
        {"use": "hackbench", "name": "load", "groups": 1, "repeat": True},
        {"use": "cyclictest", "name": "probe", "interval": "1ms"},
    ],
    "variant": [
        {"name": "default", "kernel": "6.12.107"},
        {"name": "changed", "kernel": "6.12.107"},
    ],
    "metric": [{"of": "probe.latency", "stat": "mean"}, {"of": "load.time"}],
}
scenario = schedlab.build(document, name="base-slice")
scenario

# %% [markdown]
# One comparison for each value. The default variant is the baseline every time.

# %%
frames = []
for value in ("1ms", "12ms"):
    changed = schedlab.build(document, name="base-slice", overrides={"variant.changed.knobs.base_slice": value})
    comparison = schedlab.compare(changed)
    frames.append(comparison.to_dataframe().assign(base_slice=value))
table = pandas.concat(frames)
table[["base_slice", "metric", "median_a", "median_b", "delta_pct", "low_pct", "high_pct", "verdict"]]

# %% [markdown]
# Where the two part for the first time, and which rule decided:

# %%
divergence = schedlab.explain(changed)
divergence

# %%
samples = comparison.samples_dataframe()
samples.groupby(["metric", "variant"]).value.describe()[["count", "50%", "min", "max"]]

# %%
assert set(table.metric) >= {"probe.latency.mean", "load.time"}
assert divergence.document["diverged"]
