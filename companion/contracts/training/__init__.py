"""Components of chapter ``training``, their contracts and known mistakes."""
