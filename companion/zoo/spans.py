"""T5's spans, taken out or put back in ways that lose where they were."""

import itertools

import torch

from companion.variants import span_corrupt, span_restore
from companion.zoo.animal import animal

SOURCE = "In the source one sentinel stands for each run of dropped tokens"
TARGET = "The target is each run behind its sentinel, and one sentinel more"
BACK = "Each span takes the place of its sentinel"

# Taken out


def spans(tokens, dropped, sentinel, step=-1, last=True, alone=False):
    """Span corruption, with whatever is wrong."""
    source, target, before = [], [], False
    for token, out in zip(tokens.tolist(), dropped.tolist(), strict=True):
        if out and (alone or not before):
            source.append(sentinel)
            target.append(sentinel)
            sentinel += step
        (target if out else source).append(token)
        before = out
    target += [sentinel] * last
    return torch.tensor(source), torch.tensor(target, dtype=torch.long)


@animal(
    "span_corrupt",
    seen="a common slip",
    symptom="it runs out of sentinels, and learns to say one word for each",
    contract=SOURCE,
    says="Every dropped token has a sentinel of its own",
)
def a_sentinel_a_token(tokens, dropped, sentinel):
    """Neighbours are not joined: this is BERT's MASK with numbers."""
    return spans(tokens, dropped, sentinel, alone=True)


@animal(
    "span_corrupt",
    seen="a common slip",
    symptom="trains well; published weights make nonsense of it",
    contract=SOURCE,
    says="The sentinels count up: they count down",
)
def sentinels_count_up(tokens, dropped, sentinel):
    """The second sentinel is the id after the first: outside the table."""
    return spans(tokens, dropped, sentinel, step=1)


@animal(
    "span_corrupt",
    seen="a common slip",
    symptom="the right words, in gaps that belong to others",
    contract=SOURCE,
    says="Every span has the same sentinel",
)
def one_sentinel_for_all(tokens, dropped, sentinel):
    """Every gap has the same name."""
    return spans(tokens, dropped, sentinel, step=0)


@animal(
    "span_corrupt",
    seen="a common slip",
    symptom="it never learns where to stop, and fills gaps that are not there",
    contract=TARGET,
    says="The last sentinel is missing",
)
def never_says_it_is_over(tokens, dropped, sentinel):
    """No sentinel ends the target."""
    return spans(tokens, dropped, sentinel, last=False)


@animal(
    "span_corrupt",
    seen="note 3, lines 350-370, which take T5 and BART for the same (C-67)",
    symptom="training takes several times as long: most of it is copying",
    contract=TARGET,
    says="The target is the whole text, which is BART's",
)
def target_is_the_text(tokens, dropped, sentinel):
    """The decoder writes the whole text, as BART's does."""
    return span_corrupt(tokens, dropped, sentinel)[0], tokens


@animal(
    "span_corrupt",
    seen="a common slip",
    symptom="it has to guess where something is missing, and guesses badly",
    contract=SOURCE,
    says="The spans leave nothing behind in the source",
)
def leaves_no_gap(tokens, dropped, sentinel):
    """What is dropped leaves no sentinel behind."""
    return tokens[~dropped], span_corrupt(tokens, dropped, sentinel)[1]


@animal(
    "span_corrupt",
    seen="a common slip",
    symptom="the right words, and nobody knows which gap they are for",
    contract=TARGET,
    says="The target holds no sentinels: each span comes behind its own",
)
def spans_run_together(tokens, dropped, sentinel):
    """The target is what was dropped, with no sentinel between."""
    return span_corrupt(tokens, dropped, sentinel)[0], tokens[dropped]


@animal(
    "span_corrupt",
    seen="a common slip",
    symptom="the encoder reads 15 % of a text, and the loss stays high",
    contract=SOURCE,
    says="What was to be dropped is kept, and the rest is dropped",
)
def mask_upside_down(tokens, dropped, sentinel):
    """True is taken for kept."""
    return spans(tokens, ~dropped, sentinel)


@animal(
    "span_corrupt",
    seen="a common slip",
    symptom="right in most texts; some have a sentinel too few",
    contract="The first and the last token may be dropped",
    says="without its places 0, 4, and the first sentinel is 99",
)
def wraps_round(tokens, dropped, sentinel):
    """`roll` takes the last place for the one before the first."""
    begins = dropped & ~dropped.roll(1)
    names = sentinel + 1 - begins.cumsum(0)
    two = torch.stack([names, tokens], 1)
    source = two[torch.stack([begins, ~dropped], 1)]
    target = two[torch.stack([begins, dropped], 1)]
    return source, torch.cat([target, names[-1:] - 1])


# Put back


def gaps(target, sentinel):
    """The spans of a target, in order."""
    found = []
    for token in target.tolist():
        if token == sentinel - len(found):
            found.append([])
        else:
            found[-1].append(token)
    return found[:-1]


def filled(source, target, sentinel, fill):
    """The source, with ``fill(i)`` for sentinel i."""
    count, text = len(gaps(target, sentinel)), []
    for token in source.tolist():
        i = sentinel - token
        text += fill(i) if 0 <= i < count else [token]
    return torch.tensor(text, dtype=torch.long)


@animal(
    "span_restore",
    seen="a common slip",
    symptom="all words are there, and the sentence makes no sense",
    contract=BACK,
    says="The spans are appended: each belongs where its sentinel stands",
)
def appended(source, target, sentinel):
    """What was said is put behind what was read."""
    kept = filled(source, target, sentinel, lambda i: [])
    said = [*itertools.chain(*gaps(target, sentinel))]
    return torch.cat([kept, torch.tensor(said, dtype=torch.long)])


@animal(
    "span_restore",
    seen="a common slip",
    symptom="the text has strange words before each gap that was filled",
    contract=BACK,
    says="The sentinels stay in the text",
)
def sentinels_stay(source, target, sentinel):
    """A span is put behind its sentinel, and not in its place."""
    found = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: [sentinel - i, *found[i]])


@animal(
    "span_restore",
    seen="a common slip",
    symptom="the right words in one another's places",
    contract=BACK,
    says="The spans come back in the wrong order: sentinels count down",
)
def last_span_first(source, target, sentinel):
    """Sorted by id, the last sentinel comes first."""
    found = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: found[-1 - i])


@animal(
    "span_restore",
    seen="a common slip",
    symptom="the longer the gaps, the more is missing",
    contract=BACK,
    says="Only the first token of each span comes back",
)
def a_token_a_gap(source, target, sentinel):
    """Each sentinel is replaced by the one token behind it."""
    found = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: found[i][:1])


@animal(
    "span_restore",
    seen="a common slip",
    symptom="right for short texts: long ones are full of sentinels",
    contract="It takes as many spans as there are",
    says="From the source [99, 12, 98, 14",
)
def ten_spans_at_most(source, target, sentinel):
    """Only the first ten sentinels have a name in the code."""
    found = gaps(target, sentinel)

    def fill(i):
        return found[i] if i < 10 else [sentinel - i]

    return filled(source, target, sentinel, fill)


@animal(
    "span_restore",
    seen="a common slip",
    symptom="right, but for texts in which a word stands twice",
    contract="Equal tokens are told apart by their place",
    says="expected [11, 12, 11, 12, 12, 11",
)
def drops_repetitions(source, target, sentinel):
    """The text is put together in a dictionary of its words."""
    text = span_restore(source, target, sentinel).tolist()
    return torch.tensor(list(dict.fromkeys(text)))
