"""Drives that hold real bytes: in this process, or served as a block device."""
