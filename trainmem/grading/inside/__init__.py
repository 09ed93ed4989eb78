"""All that a sandbox holds of the grader: how to run a student's cells, and how to speak. No check, answer or secret.

This folder is mounted by itself: its modules import the standard library, NumPy and IPython, and nothing else of ours.
"""
