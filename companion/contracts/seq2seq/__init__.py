"""Components of chapter ``seq2seq``, their contracts and known mistakes."""
