"""Components of chapter ``variants``, their contracts and known mistakes."""
