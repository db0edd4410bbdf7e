"""What the figure of the objectives says of a draw, and of each position."""

from companion.figures.gallery.objectives.parts import Example, Grid


def summary(model: str, example: Example) -> str:
    """What was done to the text, and where the loss counts."""
    words, lane = len(example.text), example.lanes[-1]
    asked = sum(said is not None for said in lane.says or [])
    there = f"{asked} of {len(lane.reads)} positions"
    if model == "GPT":
        return (
            f"Nothing is drawn and nothing is damaged. {there} have a loss: "
            "each must say the next token, and what comes later is hidden."
        )
    if model == "BERT":
        return _chosen(example.counts, words, there)
    gone = f"{example.counts['gone']} of {words} tokens are gone"
    gaps = example.counts["gaps"]
    if model == "T5":
        return (
            f"{gone}, and a sentinel stands for each gap. The decoder says "
            f"what is gone and no more: {there} have a loss."
        )
    masks = "one mask hides them" if gaps == 1 else f"{gaps} masks hide them"
    moved = "The sentences have changed places. " * example.counts["moved"]
    return (
        f"{moved}{gone}, and {masks} without telling how many. The decoder "
        f"says the whole text: {there} have a loss."
    )


def _chosen(counts: dict[str, int], words: int, there: str) -> str:
    fates = {"mask": "masked", "random": "random", "kept": "unchanged"}
    number = sum(counts.values())
    if not number:
        return f"No token is chosen. {there} have a loss: nothing is learnt."
    told = [f"{counts[kind]} {fate}" for kind, fate in fates.items()]
    return (
        f"{number} of {words} tokens {'is' if number == 1 else 'are'} chosen: "
        f"{', '.join(told)}. Only there must the model say what stood there: "
        f"{there} have a loss."
    )


def position(example: Example, lane: int, place: int) -> str:
    """What one position sees, and what it must say."""
    here = example.lanes[lane]
    sees = [
        _seen(grid, place, len(example.lanes) > 1)
        for grid in example.grids
        if grid.asks == lane
    ]
    said = here.says[place] if here.says else None
    side = here.name.split()[1].capitalize()
    return (
        f"{side} position {place + 1}, “{here.reads[place].text}”, sees "
        f"{' and '.join(sees)}. "
        + ("No loss here." if said is None else f"It must say “{said}”.")
    )


def _seen(grid: Grid, place: int, named: bool) -> str:
    """Which positions of a lane are seen from here."""
    row = grid.rows[place]
    of = " of the encoder" if named and grid.seen == 0 else ""
    if all(row) and (grid.asks != grid.seen or len(row) > place + 1):
        return f"all {len(row)} positions{of}"
    return {0: "itself alone", 1: "itself and the position before it"}.get(
        place, f"itself and the {place} positions before it"
    )
