"""`python -m schedlab` is the `schedlab` command."""

from schedlab.cli import console_script

raise SystemExit(console_script())
