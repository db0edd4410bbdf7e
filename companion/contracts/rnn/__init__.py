"""Components of chapter ``rnn``, their contracts and known mistakes."""
