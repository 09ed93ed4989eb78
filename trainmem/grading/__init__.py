"""Grading: salvage, run, check, record, feedback."""
