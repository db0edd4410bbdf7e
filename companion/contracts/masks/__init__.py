"""Components of chapter ``masks``, their contracts and known mistakes."""
