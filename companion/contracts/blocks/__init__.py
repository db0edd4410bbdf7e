"""Components of chapter ``blocks``, their contracts and known mistakes."""
