"""Tests of the questions: their numbers, their texts, and the widget."""
