"""Components of chapter ``efficiency``, their contracts and known mistakes."""
