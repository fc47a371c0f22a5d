"""The flags of commands, by what the commands work on; those of the others are in `schedlab.cli.parser`."""
