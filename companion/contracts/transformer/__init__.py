"""Components of chapter ``transformer``, their contracts and known mistakes."""
