"""Tests of the lesson: its text, its numbers, and that it runs where readers open it."""
