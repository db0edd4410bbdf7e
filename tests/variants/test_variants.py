"""Who sees what, and what each objective can do that another cannot.

One grammar, four models of one size, one budget. The chapter shows the same
over three seeds; here one is enough to see that a claim can break.
"""

from itertools import product

import pytest
import torch

from companion.data.batches import collate
from companion.masks import causal_mask
from companion.training import fit, linear
from companion.variants.bart import BART, BARTConfig
from companion.variants.bert import BERT, BERTConfig
from companion.variants.bert_training import MaskedModelling
from companion.variants.gpt import GPT, GPTConfig
from companion.variants.masking import mask_tokens
from companion.variants.noise import infill
from companion.variants.spans import random_spans, span_corrupt
from companion.variants.specials import BOS, EOS, FIRST_WORD, MASK, PAD
from companion.variants.t5 import T5, T5Config

pytestmark = pytest.mark.once

# A text is day 有 measure look animal, deeds, how many, 步: 11 ids at most.
# The animal behind it decides on the measure word, and the number behind them
# on how many deeds there are. As words: 今天 有 匹 白 马 来 停 看 三 步.
DAYS, ANIMALS, LOOKS, DEEDS = 5, 4, 4, 4
HAS, STEP = FIRST_WORD, FIRST_WORD + 1
DAY = STEP + 1
MEASURE = DAY + DAYS
ANIMAL = MEASURE + ANIMALS
LOOK = ANIMAL + ANIMALS
DEED = LOOK + LOOKS
NUMBER = DEED + DEEDS
WORDS = NUMBER + DEEDS
FIRST_GAP, VOCAB = WORDS + 3, WORDS + 4
SIZES = {"vocab_size": VOCAB, "d_model": 64, "num_heads": 8, "d_ff": 128}
SIZES |= {"num_layers": 1, "dropout": 0.0}
STEPS, BATCH, UNSEEN = 200, 64, 80
MODELS = {
    "BERT": lambda: BERT(BERTConfig(**SIZES)),
    "GPT": lambda: GPT(GPTConfig(**SIZES, pad=PAD)),
    "T5": lambda: T5(T5Config(**SIZES)),
    "BART": lambda: BART(BARTConfig(**SIZES)),
}


def sentences():
    sizes = range(DAYS), range(ANIMALS), range(LOOKS), range(DEEDS)
    made = []
    for day, animal, look, last in product(*sizes):
        begin = [DAY + day, HAS, MEASURE + animal, LOOK + look, ANIMAL + animal]
        deeds = range(DEED, DEED + last + 1)
        made.append([*begin, *deeds, NUMBER + last, STEP])
    order = torch.randperm(
        len(made), generator=torch.Generator().manual_seed(1)
    )
    return [made[i] for i in order]


TEXTS = sentences()
SEEN, ASKED = TEXTS[UNSEEN:], TEXTS[:UNSEEN]
VALID = set(map(tuple, TEXTS))


def ends(text):
    return [BOS, *text, EOS]


def examples(name, texts, generator):
    whole = collate([ends(text) for text in texts])
    if name == "BERT":
        return mask_tokens(whole, generator, vocab_size=WORDS)
    if name == "GPT":
        return (whole,)
    read, say = [], []
    for text in map(torch.tensor, texts):
        share = 0.1 + 0.4 * float(torch.rand((), generator=generator))
        if name == "T5":
            gaps = random_spans(len(text), generator, share=share)
            noisy, answer = span_corrupt(text, gaps, FIRST_GAP)
        else:
            noisy, answer = infill(text, generator, share=share), text
        read.append(ends(noisy.tolist()))
        say.append(ends(answer.tolist()))
    return collate(read), collate(say)


@pytest.fixture(scope="module")
def trained():
    """All four, by the same number of steps on as many texts."""
    return {name: train(name) for name in MODELS}


def train(name):
    torch.manual_seed(1)
    model, generator = MODELS[name](), torch.Generator().manual_seed(1)
    pool = examples(name, SEEN * 24, generator)
    batches = []
    for _ in range(STEPS):
        few = torch.randint(len(pool[0]), (BATCH,), generator=generator)
        batches.append(tuple(side[few] for side in pool))
    how = {"objective": MaskedModelling(model)} if name == "BERT" else {}
    how["rate"] = lambda step: linear(step, STEPS, peak=5e-3, warmup=20)
    fit(model, batches, **how)
    return model.eval().requires_grad_(False)


def write(scores, said, generator=None):
    """Goes on from ``said``: the likeliest token, or a drawn one."""
    for _ in range(14):
        p = scores(said)[:, -1].softmax(-1)
        token = (
            p.argmax(-1, keepdim=True)
            if generator is None
            else p.multinomial(1, generator=generator)
        )
        said = torch.cat([said, token], 1)
    rows = [row[1:] for row in said.tolist()]
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]


def repaired(name, model, holes):
    """The texts whose part i … j - 1 is one hole, from T5 or BART."""
    gap = [FIRST_GAP] if name == "T5" else [MASK]
    src = collate([ends(t[:i] + gap + t[j:]) for t, i, j in holes])
    begin = torch.full((len(src), 1), BOS)
    said = write(lambda tgt: model(src, tgt), begin)
    if name == "BART":
        return said
    pairs = zip(said, holes, strict=True)
    return [t[:i] + s[1:-1] + t[j:] for s, (t, i, j) in pairs]


def filled(model, holes, masks=None):
    """The same from BERT, with so many masks a hole, or as many as it needs."""
    rows = [
        ends(t[:i] + [MASK] * (masks or j - i) + t[j:]) for t, i, j in holes
    ]
    tokens = collate(rows)
    tokens = torch.where(tokens == MASK, model(tokens).argmax(-1), tokens)
    pairs = zip(tokens.tolist(), rows, strict=True)
    return [full[1 : len(row) - 1] for full, row in pairs]


def share(flags):
    flags = list(flags)
    return sum(flags) / len(flags)


def right(said, holes):
    pairs = zip(said, holes, strict=True)
    return share(text == hole[0] for text, hole in pairs)


def deeds(text):
    at = [i for i, token in enumerate(text) if DEED <= token < NUMBER]
    return text, at[0], at[-1] + 1


MEASURES = [(text, 2, 3) for text in ASKED]
DONE = [deeds(text) for text in ASKED]
CHANCE = 1 / 4


def continued(model, holes, generator=None):
    """What GPT makes of the text before each hole; it sees nothing else."""
    said = {}
    for length in {i for _, i, _ in holes}:
        some = [t for t, i, _ in holes if i == length]
        begin = torch.tensor([[BOS, *t[:length]] for t in some])
        answers = write(model, begin, generator)
        said |= dict(zip(map(tuple, some), answers, strict=True))
    return [said[tuple(text)] for text, _, _ in holes]


# A word that only what stands behind it decides


def test_bert_t5_and_bart_find_a_word_that_the_right_side_decides(trained):
    assert right(filled(trained["BERT"], MEASURES), MEASURES) > 0.9
    for name in ("T5", "BART"):
        said = repaired(name, trained[name], MEASURES)
        assert right(said, MEASURES) > 0.8


def test_gpt_writes_that_word_by_chance(trained):
    pairs = zip(continued(trained["GPT"], MEASURES), ASKED, strict=True)
    assert share(s[2] == t[2] for s, t in pairs) < CHANCE + 0.15


def test_gpt_knows_that_word_when_it_may_read_all_four_texts(trained):
    totals = []
    for measure in range(MEASURE, MEASURE + ANIMALS):
        x = collate([ends([*t[:2], measure, *t[3:]]) for t in ASKED])
        logs = trained["GPT"](x[:, :-1]).log_softmax(-1)
        said = logs.gather(-1, x[:, 1:, None]).squeeze(-1)
        totals.append((said * (x[:, 1:] != PAD)).sum(1))
    best = torch.stack(totals).argmax(0) + MEASURE
    assert share(best == torch.tensor([t[2] for t in ASKED])) > 0.95


# A hole of which nobody says how long it is


def test_t5_and_bart_fill_a_hole_of_unknown_length(trained):
    for name in ("T5", "BART"):
        assert right(repaired(name, trained[name], DONE), DONE) > 0.9


def test_bert_fills_it_only_when_told_the_length(trained):
    one = share(j - i == 1 for _, i, j in DONE)
    assert right(filled(trained["BERT"], DONE, masks=1), DONE) <= one < 0.3
    assert right(filled(trained["BERT"], DONE), DONE) > 0.7


def test_gpt_cannot_know_the_length_that_the_right_side_decides(trained):
    assert right(continued(trained["GPT"], DONE), DONE) < CHANCE + 0.15


# Going on


def test_gpt_goes_on_by_the_grammar(trained):
    begin = [(text, 2, len(text)) for text in ASKED]
    generator = torch.Generator().manual_seed(1)
    said = continued(trained["GPT"], begin, generator)
    assert share(tuple(text) in VALID for text in said) > 0.9


def test_two_words_that_bert_draws_at_once_do_not_know_each_other(trained):
    tokens = collate([ends([*t[:2], MASK, t[3], MASK, *t[5:]]) for t in ASKED])
    model = trained["BERT"]
    p = model(tokens).softmax(-1)
    measures = p[:, 3, MEASURE : MEASURE + ANIMALS]
    animals = p[:, 5, ANIMAL : ANIMAL + ANIMALS]
    at_once = float((measures * animals).sum(-1).mean())
    # The measure first, then the animal beside it.
    in_turn = 0.0
    for kind in range(ANIMALS):
        tokens[:, 3] = MEASURE + kind
        then = model(tokens)[:, 5].softmax(-1)[:, ANIMAL + kind]
        in_turn += float((measures[:, kind] * then).mean())
    assert at_once < 0.55
    assert in_turn > at_once + 0.25


# Who sees whom


def dependencies(table, run):
    """For each use of ``table``: True where output i feels vector j."""
    vectors = []
    hook = table.register_forward_hook(
        lambda module, args, out: vectors.append(out)
    )
    rows = run()[0]
    hook.remove()
    # One feature: the sum of all is constant behind a new layer norm.
    slopes = [
        torch.autograd.grad(row[0], vectors, retain_graph=True) for row in rows
    ]
    return [
        torch.stack([slope[0].abs().sum(-1) > 0 for slope in of])
        for of in zip(*slopes, strict=True)
    ]


def text_of(length):
    return torch.randint(FIRST_WORD, WORDS, (1, length))


def test_bert_sees_all_and_gpt_the_past():
    tokens = text_of(7)
    bert, gpt = MODELS["BERT"](), MODELS["GPT"]()
    (both,) = dependencies(bert.embedding, lambda: bert(tokens))
    (past,) = dependencies(gpt.embedding, lambda: gpt(tokens))
    assert both.all()
    assert torch.equal(past, causal_mask(7))


@pytest.mark.parametrize("name", ["T5", "BART"])
def test_an_encoder_sees_all_and_a_decoder_its_past_and_all_of_that(name):
    src, tgt = text_of(7), text_of(5)
    model = MODELS[name]()
    table = model.tgt_embedding
    (own,) = dependencies(table, lambda: model.encode(src, None))
    cross, past = dependencies(table, lambda: model(src, tgt))
    assert own.all()
    assert cross.all()
    assert cross.shape == (5, 7)
    assert torch.equal(past, causal_mask(5))
