"""Components of chapter ``tokens``, their contracts and known mistakes."""
