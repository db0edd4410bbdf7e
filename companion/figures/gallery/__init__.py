"""The figures of the course, a folder each: model, view, script and style."""
