"""Components of chapter ``attention``, their contracts and known mistakes."""
