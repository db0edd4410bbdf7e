"""From words to vectors, and the networks that read them in order.

Words for axes, the same in the book, the code and the tests:
    batch      sentences worked on together
    document   texts that are counted
    seq        positions in a sentence
    vocab      tokens that are known
    class      answers a classifier chooses from
    d_in       width of what a recurrent network reads at one position
    hidden     width of its memory
    d_out      width of what it says at one position
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.checks import check_ids, check_vectors

Ids = Int[Tensor, "batch seq"]
Memory = Float[Tensor, "batch hidden"]


def one_hot(
    ids: Int[Tensor, "*axes"], vocab_size: int
) -> Float[Tensor, "*axes vocab"]:
    """Write each id as a vector: 1 at the id's own place, 0 everywhere else.

    Args:
        ids: Token ids.
        vocab_size: How many ids there are, which is how wide a vector is.

    Returns:
        One vector an id.

    Raises:
        TypeError, ValueError: An id is no whole number from 0 to
            ``vocab_size - 1``.

    Example:
        >>> one_hot(torch.tensor([2, 0]), 3)
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """
    check_ids("ids", ids, vocab_size)
    places = torch.arange(vocab_size, device=ids.device)
    return (ids.unsqueeze(-1) == places).float()


def bag_of_words(
    ids: Int[Tensor, "*axes seq"], vocab_size: int
) -> Float[Tensor, "*axes vocab"]:
    """Count how often each token occurs in a sentence; where it stood is lost.

    Args:
        ids: Token ids of sentences.
        vocab_size: How many ids there are.

    Returns:
        One vector of counts a sentence.

    Raises:
        TypeError, ValueError: As ``one_hot``; or there is no axis of positions.

    Example:
        >>> bag_of_words(torch.tensor([2, 0, 2]), 3)
        tensor([1., 0., 2.])
    """
    vectors = one_hot(ids, vocab_size)
    if ids.ndim == 0:
        raise ValueError("ids: expected an axis of positions, got shape ()")
    return vectors.sum(dim=-2)


def tf_idf(
    counts: Float[Tensor, "document vocab"],
) -> Float[Tensor, "document vocab"]:
    """Weight counts by how few documents a word occurs in.

    A word in ``df`` of ``N`` documents has the weight ln(N / df) (Spärck
    Jones, 1972), without smoothing: a word that stands in all of them gets 0.

    Args:
        counts: How often each word occurs in each document.

    Returns:
        The weighted counts.

    Raises:
        TypeError, ValueError: ``counts`` is no filled table of numbers >= 0.

    Example:
        >>> tf_idf(torch.tensor([[2.0, 1.0], [0.0, 1.0]]))
        tensor([[1.3863, 0.0000],
                [0.0000, 0.0000]])
    """
    check_vectors("counts", counts, counts, document=None, vocab=None)
    if not (counts >= 0).all():
        low = counts.min().item()
        raise ValueError(f"counts: expected numbers from 0 up, got {low}")
    df = (counts > 0).sum(dim=0)
    # Without the clamp a word that stands in none would give 0 · ∞ = NaN.
    return counts * torch.log(len(counts) / df.clamp(min=1))


def feed_forward(d_in: int, hidden: int, d_out: int) -> nn.Sequential:
    """Build a feed-forward network with one hidden layer and tanh.

    Args:
        d_in: Width of the input.
        hidden: Width of the hidden layer.
        d_out: Width of the output.

    Returns:
        The network, with PyTorch's own initial weights.

    Example:
        >>> feed_forward(3, 5, 2)(torch.zeros(7, 3)).shape
        torch.Size([7, 2])
    """
    return nn.Sequential(
        nn.Linear(d_in, hidden), nn.Tanh(), nn.Linear(hidden, d_out)
    )


class MeanFNN(nn.Module):
    """Classify a sentence by the average of its word vectors.

    An average has no order, so two orders of the same words get one answer.

    Args:
        vocab_size: How many token ids there are.
        d_model: Width of a word vector.
        num_classes: How many answers there are.

    Example:
        >>> model = MeanFNN(vocab_size=7, d_model=5, num_classes=2)
        >>> forwards, backwards = model(torch.tensor([[1, 2, 3], [3, 2, 1]]))
        >>> torch.allclose(forwards, backwards)
        True
    """

    def __init__(self, vocab_size: int, d_model: int, num_classes: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.fnn = feed_forward(d_model, d_model, num_classes)

    def forward(self, ids: Ids) -> Float[Tensor, "batch class"]:
        """Logits, one for each class."""
        check_ids("ids", ids, self.embedding.num_embeddings, axes=2)
        return self.fnn(self.embedding(ids).mean(dim=1))


class ConcatFNN(nn.Module):
    """Classify a sentence by its word vectors, laid side by side.

    It sees the order, but each place has weights of its own: what it learns
    at one place it does not know at another. And it fits one length only.

    Args:
        vocab_size: How many token ids there are.
        d_model: Width of a word vector.
        num_classes: How many answers there are.
        length: How many words each sentence has.

    Example:
        >>> model = ConcatFNN(7, 5, num_classes=2, length=3)
        >>> forwards, backwards = model(torch.tensor([[1, 2, 3], [3, 2, 1]]))
        >>> torch.allclose(forwards, backwards)
        False
    """

    def __init__(
        self, vocab_size: int, d_model: int, num_classes: int, length: int
    ):
        super().__init__()
        self.length = length
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.fnn = feed_forward(length * d_model, d_model, num_classes)

    def forward(self, ids: Ids) -> Float[Tensor, "batch class"]:
        """Logits, one for each class.

        Raises:
            ValueError: the length is not the one the network was built for.
        """
        check_ids("ids", ids, self.embedding.num_embeddings, axes=2)
        if ids.shape[1] != self.length:
            raise ValueError(
                f"ids: this ConcatFNN was built for length {self.length}, "
                f"got sentences of length {ids.shape[1]}"
            )
        return self.fnn(self.embedding(ids).flatten(start_dim=1))


def unroll(
    x: Float[Tensor, "batch seq d_in"],
    h0: Float[Tensor, "batch hidden"],
    W: Float[Tensor, "hidden d_in"],
    U: Float[Tensor, "hidden hidden"],
    b: Float[Tensor, " hidden"],
) -> Float[Tensor, "batch seq hidden"]:
    """All hidden states h_t = tanh(W x_t + U h_{t-1} + b), one after another.

    The same weights serve every position, whatever the length (Elman, 1990).
    Our b is the sum of the two biases of ``nn.RNN``.

    Raises:
        TypeError: an argument has another number type than ``W``.
        ValueError: a shape does not fit, or ``x`` is empty.
    """
    check_vectors("W", W, W, hidden=None, d_in=None)
    hidden, d_in = W.shape
    check_vectors("x", x, W, batch=None, seq=None, d_in=d_in)
    check_vectors("h0", h0, W, batch=len(x), hidden=hidden)
    check_vectors("U", U, W, hidden=hidden, before=hidden)
    check_vectors("b", b, W, hidden=hidden)
    # W x_t waits for nobody, so all of them are computed at once.
    driven = x @ W.T + b
    states, h = [], h0
    for driven_t in driven.unbind(dim=1):
        h = torch.tanh(driven_t + h @ U.T)
        states.append(h)
    return torch.stack(states, dim=1)


def start_small(*shape: int, hidden: int) -> nn.Parameter:
    """Draw a weight from within ±1/√hidden, as ``nn.RNN`` does.

    Args:
        shape: Its shape.
        hidden: Width of the memory.

    Returns:
        A parameter.

    Example:
        >>> bool(start_small(3, 5, hidden=4).abs().max() <= 0.5)
        True
    """
    return nn.Parameter(torch.empty(shape).uniform_(-1, 1) * hidden**-0.5)


class RNN(nn.Module):
    """Read a sequence one vector at a time: W reads, U remembers, V speaks.

    The outputs V h_t + c are logits; the tanh belongs to the memory only.

    Args:
        d_in: Width of what is read at one position.
        hidden: Width of the memory.
        d_out: Width of an output.

    Example:
        >>> outputs, states = RNN(3, 5, 2)(torch.zeros(1, 7, 3))
        >>> outputs.shape, states.shape
        (torch.Size([1, 7, 2]), torch.Size([1, 7, 5]))
    """

    def __init__(self, d_in: int, hidden: int, d_out: int):
        super().__init__()
        self.W = start_small(hidden, d_in, hidden=hidden)
        self.U = start_small(hidden, hidden, hidden=hidden)
        self.b = start_small(hidden, hidden=hidden)
        self.V = start_small(d_out, hidden, hidden=hidden)
        self.c = start_small(d_out, hidden=hidden)

    def forward(
        self,
        x: Float[Tensor, "batch seq d_in"],
        h0: Memory | None = None,
    ) -> tuple[
        Float[Tensor, "batch seq d_out"], Float[Tensor, "batch seq hidden"]
    ]:
        """Outputs and hidden states; the memory starts empty without ``h0``."""
        check_vectors("x", x, self.W, batch=None, seq=None, d_in=None)
        if h0 is None:
            h0 = self.b.new_zeros(len(x), len(self.b))
        states = unroll(x, h0, self.W, self.U, self.b)
        return states @ self.V.T + self.c, states


class LSTM(nn.Module):
    """Read a sequence with a memory that is guarded by gates.

    Hochreiter and Schmidhuber (1997), with the forget gate f of Gers et al.
    (2000). The rows of W, U and b belong to the gates i, f, g, o, in the
    order of ``nn.LSTM``; its two biases are one here.

    Args:
        d_in: Width of what is read at one position.
        hidden: Width of the memory.

    Example:
        >>> states, (last, cell) = LSTM(3, 5)(torch.zeros(1, 7, 3))
        >>> torch.equal(states[:, -1], last)
        True
    """

    def __init__(self, d_in: int, hidden: int):
        super().__init__()
        self.W = start_small(4 * hidden, d_in, hidden=hidden)
        self.U = start_small(4 * hidden, hidden, hidden=hidden)
        self.b = start_small(4 * hidden, hidden=hidden)

    def forward(
        self,
        x: Float[Tensor, "batch seq d_in"],
        state: tuple[Memory, Memory] | None = None,
    ) -> tuple[Float[Tensor, "batch seq hidden"], tuple[Memory, Memory]]:
        """All h_t, and the last (h, c); both start empty without ``state``.

        Raises:
            TypeError, ValueError: as ``unroll`` does.
        """
        hidden, d_in = self.U.shape[1], self.W.shape[1]
        check_vectors("x", x, self.W, batch=None, seq=None, d_in=d_in)
        batch = len(x)
        h, c = (x.new_zeros(batch, hidden),) * 2 if state is None else state
        check_vectors("h", h, self.W, batch=batch, hidden=hidden)
        check_vectors("c", c, self.W, batch=batch, hidden=hidden)
        driven = x @ self.W.T + self.b
        states = []
        for driven_t in driven.unbind(dim=1):
            i, f, g, o = (driven_t + h @ self.U.T).chunk(4, dim=-1)
            # What is kept passes by a product and a sum: no tanh, no matrix.
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            states.append(h)
        return torch.stack(states, dim=1), (h, c)


def gradient_to_inputs(
    x: Float[Tensor, "seq d_in"],
    h0: Float[Tensor, " hidden"],
    W: Float[Tensor, "hidden d_in"],
    U: Float[Tensor, "hidden hidden"],
    b: Float[Tensor, " hidden"],
) -> Float[Tensor, " seq"]:
    """Measure how far each input moves the last state: the norms of ∂h_T/∂x_t.

    One sentence. Automatic differentiation finds each Jacobian, of which this
    is the Frobenius norm; on paper it is a product of T - t matrices
    diag(1 - h²) U, times diag(1 - h_t²) W.

    Args:
        x: What is read.
        h0: The memory before the first word.
        W: What reads.
        U: What remembers.
        b: The bias.

    Returns:
        One norm a position.

    Raises:
        TypeError, ValueError: As ``unroll``.

    Example:
        With W = 1 and U = 1/2, a word that lies one step back counts half.

        >>> x, one = torch.zeros(3, 1), torch.ones(1, 1)
        >>> zero = torch.zeros(1)
        >>> gradient_to_inputs(x, zero, one, one / 2, zero)
        tensor([0.2500, 0.5000, 1.0000])
    """
    check_vectors("x", x, W, seq=None, d_in=None)
    check_vectors("h0", h0, W, hidden=None)

    def last_state(x):
        return unroll(x.unsqueeze(0), h0.unsqueeze(0), W, U, b)[0, -1]

    jacobian = torch.func.jacrev(last_state)(x)  # hidden, seq, d_in
    return torch.linalg.vector_norm(jacobian, dim=(0, 2))
