"""Components of chapter ``multihead``, their contracts and known mistakes."""
