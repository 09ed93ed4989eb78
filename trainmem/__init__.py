"""What the course runs on: memory as data, figures, measurements, review cards, the build and the grading."""
