"""Tests of the course, and the sample class that `make grade` grades."""
