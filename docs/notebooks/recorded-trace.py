# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A trace of a real kernel
#
# A trace of the recorded corpus is driven through the policy of a kernel row: how often does the model decide as the kernel did?

# %%
import pandas

import schedlab

trace = "crates/schedlab-replay/corpus/5.10.262-1cpu-niced.ftrace.gz"
answer = schedlab.replay(trace)
answer

# %% [markdown]
# Every row on the same trace. The row of the recorded kernel should agree best.

# %%
rows = schedlab.replay(trace, matrix=True)
reports = rows.document["reports"]
pandas.DataFrame([{key: r[key] for key in ("kernel",) if key in r} for r in reports])

# %%
rows

# %%
assert len(reports) > 5
