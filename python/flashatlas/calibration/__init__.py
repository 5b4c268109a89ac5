"""Calibration: the parameters of a drive, found from fio's measurements of a real one."""
