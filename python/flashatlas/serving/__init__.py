"""Drives with real bytes, in this process or served as a block device."""
