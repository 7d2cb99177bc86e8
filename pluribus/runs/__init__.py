"""From a configuration to a run folder, and what is read from one."""
