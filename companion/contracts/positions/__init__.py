"""Components of chapter ``positions``, their contracts and known mistakes."""
