"""What a layer costs, how far words are apart in it, and who has to wait.

The kinds of layer, each with ``n`` positions of width ``d``:
    rnn           one step after another, h_t from x_t and h_{t-1}
    convolution   a position reads itself and the kernel - 1 before it
    dilated       the same, with gaps that double from layer to layer
    attention     each position reads all
"""

LAYERS = ("rnn", "convolution", "dilated", "attention")


def check_layer(layer: str, **sizes: int) -> None:
    """Refuse a kind of layer nobody knows, and sizes below 1.

    Args:
        layer: Its name.
        sizes: Names and values.

    Raises:
        ValueError: As said.
    """
    if layer not in LAYERS:
        raise ValueError(f"layer: expected one of {LAYERS}, got {layer!r}")
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}: expected at least 1, got {size}")


def path_length(layer: str, n: int, kernel: int = 3) -> int:
    """Count the steps from the first of ``n`` words to the last one's state.

    A step is one application of weights to a state: for an RNN one position
    on, for the others one layer up, in a stack just deep enough. One layer of
    a convolution reaches kernel - 1 positions back; with gaps 1, 2, 4, … the
    reach of L layers is (kernel - 1)(2^L - 1). Table 1 of Vaswani et al.
    (2017) gives the orders of magnitude.

    Args:
        layer: Its name.
        n: Words in the sentence.
        kernel: Width of a convolution.

    Returns:
        How many steps.

    Raises:
        ValueError: ``layer`` is unknown, ``n`` is below 1, ``kernel`` below 2.

    Example:
        >>> path_length("rnn", 7), path_length("attention", 7)
        (6, 1)
    """
    check_layer(layer, n=n)
    if kernel < 2:
        raise ValueError(f"kernel: expected at least 2, got {kernel}")
    distance = n - 1
    if layer == "rnn":
        return distance
    if layer == "attention":
        return min(distance, 1)
    steps = -(-distance // (kernel - 1))  # Rounded up.
    return steps if layer == "convolution" else steps.bit_length()


def serial_steps(layer: str, n: int) -> int:
    """Count the steps of a layer that wait for others, on ample hardware.

    Args:
        layer: Its name.
        n: Words in the sentence.

    Returns:
        How many steps.

    Raises:
        ValueError: ``layer`` is unknown, or ``n`` is below 1.

    Example:
        >>> serial_steps("rnn", 7), serial_steps("attention", 7)
        (7, 1)
    """
    check_layer(layer, n=n)
    return n if layer == "rnn" else 1


def macs(
    layer: str, n: int, d: int, kernel: int = 3, *, projections: bool = False
) -> int:
    """Count a layer's multiply-accumulates over a sentence, without biases.

    An RNN has two d × d matrices a position, a convolution ``kernel`` of them.
    Attention multiplies n × n pairs of d numbers twice, for scores and for
    output. Vaswani et al. (2017), table 1, leave the projections out.

    Args:
        layer: Its name.
        n: Words in the sentence.
        d: Width of a state.
        kernel: Width of a convolution.
        projections: Whether attention's four d × d matrices a position count,
            which make queries, keys, values and the output.

    Returns:
        How many.

    Raises:
        ValueError: ``layer`` is unknown, or a size is below 1.

    Example:
        >>> macs("rnn", 7, 3), macs("attention", 7, 3)
        (126, 294)
    """
    check_layer(layer, n=n, d=d, kernel=kernel)
    if layer == "attention":
        return 2 * n * n * d + 4 * n * d * d * projections
    matrices = 2 if layer == "rnn" else kernel
    return matrices * n * d * d
