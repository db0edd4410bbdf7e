"""Components of chapter ``decoding``, their contracts and known mistakes."""
