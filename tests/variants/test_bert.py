"""BERT and what it reads: Hugging Face agrees, rules hold, it learns."""

import copy
from itertools import chain

import pytest
import torch
import torch.nn.functional as F

from companion.data.phrasebook import batch
from companion.data.vocabulary import Vocabulary
from companion.training import fit, linear
from companion.variants import (
    BERT,
    BOS,
    EOS,
    FIRST_WORD,
    MASK,
    PAD,
    BERTConfig,
    Classifier,
    Classifying,
    MaskedModelling,
    PreTraining,
    mask_tokens,
    sentence_pairs,
)

# All sizes differ, so no axis can stand in for another. Two heads of 13.
BATCH, SEQ, D_MODEL, NUM_HEADS, D_FF, VOCAB, LAYERS = 5, 7, 26, 2, 11, 19, 3
MAX_LEN, CLASSES = 17, 4


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def config(**changes):
    return BERTConfig(
        **{
            "vocab_size": VOCAB,
            "max_len": MAX_LEN,
            "d_model": D_MODEL,
            "num_heads": NUM_HEADS,
            "d_ff": D_FF,
            "num_layers": LAYERS,
            "dropout": 0.0,
        }
        | changes
    )


def unhidden(made):
    """Gains of 1, biases of 0 and small tables would hide what is lost."""
    for name, parameter in made.named_parameters():
        if name.endswith(("gain", "bias")) or parameter.std() < 0.05:
            with torch.no_grad():
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return made


def model(**changes):
    return unhidden(BERT(config(**changes)).double())


@pytest.fixture
def tokens():
    """Three sentences with padding, one of them within, and two without."""
    ids = torch.randint(FIRST_WORD, VOCAB, (BATCH, SEQ))
    ids[:, 0] = BOS
    ids[0, 5:] = ids[1, 3] = ids[2, 2:4] = PAD
    return ids


@pytest.fixture
def segments():
    return (torch.arange(SEQ) > 2).long().repeat(BATCH, 1)


# What is masked.


@pytest.fixture(scope="module")
def masked():
    """A corpus of 150 000 ids, some special, and what becomes of it."""
    made = torch.randint(0, 97, (1500, 100), generator=generator())
    return made, *mask_tokens(made, generator(1), vocab_size=97)


def is_share(events, share):
    """Whether the share of True is within five standard errors of ``share``."""
    error = (share * (1 - share) / events.numel()) ** 0.5
    return abs(events.double().mean().item() - share) < 5 * error


def test_fifteen_of_a_hundred_words_are_chosen(masked):
    tokens, _, target = masked
    assert (tokens >= FIRST_WORD).sum() > 100_000
    assert is_share(target[tokens >= FIRST_WORD] != PAD, 0.15)


def test_of_the_chosen_80_are_hidden_10_random_and_10_unchanged(masked):
    tokens, inputs, target = masked
    chosen = target != PAD
    read, was = inputs[chosen], tokens[chosen]
    assert is_share(read == MASK, 0.8)
    # One random word in 93 is the right one by luck.
    assert is_share(read == was, 0.1 + 0.1 / 93)
    assert is_share((read != was) & (read != MASK), 0.1 * 92 / 93)


def test_a_random_word_is_any_word_and_no_special_id(masked):
    tokens, inputs, _ = masked
    random = inputs[(inputs != tokens) & (inputs != MASK)]
    assert random.unique().tolist() == list(range(FIRST_WORD, 97))
    assert is_share(random < FIRST_WORD + 31, 31 / 93)


def test_no_special_id_is_ever_chosen(masked):
    tokens, inputs, target = masked
    special = tokens < FIRST_WORD
    assert (target[special] == PAD).all()
    assert torch.equal(inputs[special], tokens[special])


def test_the_target_is_the_word_where_chosen_and_pad_elsewhere(masked):
    tokens, inputs, target = masked
    chosen = target != PAD
    assert torch.equal(target[chosen], tokens[chosen])
    assert torch.equal(inputs[~chosen], tokens[~chosen])


def test_what_happens_to_a_token_depends_on_no_other(masked):
    """Neighbours are chosen, and hidden, as if they did not know each other."""
    tokens, inputs, target = masked
    words = (tokens[:, 1:] >= FIRST_WORD) & (tokens[:, :-1] >= FIRST_WORD)
    chosen = target != PAD
    both = chosen[:, 1:] & chosen[:, :-1]
    assert is_share(both[words], 0.15**2)
    hidden = inputs == MASK
    assert is_share((hidden[:, 1:] & hidden[:, :-1])[both], 0.8**2)


def test_masking_on_paper():
    tokens = torch.tensor([[BOS, 7, 5, EOS, PAD]])
    inputs, target = mask_tokens(tokens, generator(), vocab_size=8, share=1.0)
    assert target.tolist() == [[PAD, 7, 5, PAD, PAD]]
    inputs, target = mask_tokens(tokens, generator(), vocab_size=8, share=0.0)
    assert inputs.tolist() == tokens.tolist()
    assert target.tolist() == [[PAD] * 5]


def test_the_generator_decides_and_nothing_else(tokens):
    drawn = generator(3)
    before = torch.get_rng_state()
    first = mask_tokens(tokens, drawn, vocab_size=VOCAB, share=0.5)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(7)
    again = mask_tokens(tokens, generator(3), vocab_size=VOCAB, share=0.5)
    assert all(map(torch.equal, first, again))
    # Called anew, it chooses anew: RoBERTa's dynamic masking.
    other = mask_tokens(tokens, drawn, vocab_size=VOCAB, share=0.5)
    assert not torch.equal(first[1], other[1])


def test_masking_leaves_its_argument_alone_and_keeps_its_type():
    tokens = torch.full((3, 5, 7), 5, dtype=torch.int32)
    inputs, target = mask_tokens(tokens, generator(), vocab_size=7, share=0.9)
    assert (tokens == 5).all()
    for made in (inputs, target):
        assert (made.shape, made.dtype) == (tokens.shape, torch.int32)


def test_a_row_without_words_gets_nothing_chosen():
    tokens = torch.tensor([[BOS, EOS, PAD, MASK]])
    inputs, target = mask_tokens(tokens, generator(), vocab_size=9, share=1.0)
    assert torch.equal(inputs, tokens)
    assert (target == PAD).all()


# Pairs of sentences.


def library(documents=300, sentences=7):
    """Each sentence is its document and its place, so that a row tells both."""
    return [
        [[FIRST_WORD + d, 1000 + s] + [9] * (s % 3) for s in range(sentences)]
        for d in range(documents)
    ]


def places(row):
    """Document and place of both sentences of a row."""
    first, second = (row == EOS).nonzero().flatten().tolist()
    assert row[0] == BOS
    assert (row[second + 1 :] == PAD).all()
    told = row[1:first].tolist(), row[first + 1 : second].tolist()
    return [(d - FIRST_WORD, s - 1000) for d, s, *_ in told]


def test_a_second_sentence_comes_next_or_is_of_another_document():
    tokens, _, is_next = sentence_pairs(library(), generator())
    for row, follows in zip(tokens, is_next.tolist(), strict=True):
        (doc, place), (other, there) = places(row)
        if follows:
            assert (other, there) == (doc, place + 1)
        else:
            assert other != doc


def test_half_of_the_second_sentences_come_next():
    _, _, is_next = sentence_pairs(library(), generator())
    assert is_share(is_next, 0.5)
    # Whether one does says nothing about whether the following one does.
    assert is_share(is_next[1:] == is_next[:-1], 0.5)


def test_every_sentence_but_the_last_of_its_document_stands_first_once():
    tokens, _, _ = sentence_pairs(library(11, 5), generator())
    first = [places(row)[0] for row in tokens]
    assert first == [(d, s) for d in range(11) for s in range(4)]


def test_the_sentences_of_others_are_drawn_from_everywhere():
    tokens, _, is_next = sentence_pairs(library(5, 200), generator())
    strange = [places(row) for row in tokens[~is_next]]
    for doc in range(5):
        others = {there[0] for here, there in strange if here[0] == doc}
        assert others == set(range(5)) - {doc}
    assert {0, 199} <= {there[1] for _, there in strange}


def test_segments_say_which_sentence_a_token_is_of():
    documents = [[[5, 6], [7]], [[8, 9, 10]]]
    seen = set()
    for seed in range(9):
        made = sentence_pairs(documents, generator(seed))
        tokens, segments, (follows,) = (part.tolist() for part in made)
        seen.add(follows)
        if follows:
            assert tokens == [[BOS, 5, 6, EOS, 7, EOS]]
            assert segments == [[0, 0, 0, 0, 1, 1]]
        else:
            assert tokens == [[BOS, 5, 6, EOS, 8, 9, 10, EOS]]
            assert segments == [[0, 0, 0, 0, 1, 1, 1, 1]]
    assert seen == {True, False}


def test_short_pairs_are_padded_and_padding_is_of_segment_0():
    documents = [[[5] * 9, [6], [7]], [[8], [9]]]
    tokens, segments, _ = sentence_pairs(documents, generator())
    assert tokens.shape == segments.shape
    assert (tokens == PAD).any()
    assert (segments[tokens == PAD] == 0).all()


def test_the_same_generator_gives_the_same_pairs():
    made = sentence_pairs(library(5), generator(3))
    again = sentence_pairs(library(5), generator(3))
    assert all(map(torch.equal, made, again))


# Hugging Face's BERT, with our weights.


def theirs_of(ours):
    from transformers import BertConfig, BertForPreTraining

    sizes = ours.config
    theirs = BertForPreTraining(
        BertConfig(
            vocab_size=sizes.vocab_size,
            hidden_size=sizes.d_model,
            num_hidden_layers=sizes.num_layers,
            num_attention_heads=sizes.num_heads,
            intermediate_size=sizes.d_ff,
            max_position_embeddings=sizes.max_len,
            type_vocab_size=sizes.num_segments,
            hidden_act="gelu",
        )
    ).double()
    missing, surplus = theirs.load_state_dict(translated(ours), strict=False)
    assert set(missing) <= {"cls.predictions.decoder.bias"}  # Tied.
    assert not surplus
    return theirs.eval()


LAYER = {
    "self_attention.q_proj": "attention.self.query",
    "self_attention.k_proj": "attention.self.key",
    "self_attention.v_proj": "attention.self.value",
    "self_attention.out_proj": "attention.output.dense",
    "attention_residual.norm": "attention.output.LayerNorm",
    "feed_forward.up_proj": "intermediate.dense",
    "feed_forward.down_proj": "output.dense",
    "feed_forward_residual.norm": "output.LayerNorm",
}
AROUND = {
    "embedding": "bert.embeddings.word_embeddings",
    "segments": "bert.embeddings.token_type_embeddings",
    "positions": "bert.embeddings.position_embeddings",
    "norm": "bert.embeddings.LayerNorm",
    "pooler.0": "bert.pooler.dense",
    "transform.0": "cls.predictions.transform.dense",
    "transform.2": "cls.predictions.transform.LayerNorm",
    "next_proj": "cls.seq_relationship",
}


def translated(ours):
    state = {}
    for name, value in ours.state_dict().items():
        place, part = name.rpartition(".")[::2]
        part = "weight" if part == "gain" else part
        if name == "logits_bias":
            state["cls.predictions.bias"] = value
        elif place.startswith("encoder.layers."):
            _, _, number, rest = place.split(".", 3)
            state[f"bert.encoder.layer.{number}.{LAYER[rest]}.{part}"] = value
        else:
            state[f"{AROUND[place]}.{part}"] = value
    table = state["bert.embeddings.word_embeddings.weight"]
    state["cls.predictions.decoder.weight"] = table
    # There "yes, it comes next" is 0, and here it is 1.
    for part in ("weight", "bias"):
        name = f"cls.seq_relationship.{part}"
        state[name] = state[name].flip(0)
    return state


@pytest.fixture(scope="module")
def twins():
    torch.manual_seed(0)
    ours = model()
    return ours, theirs_of(ours)


@pytest.mark.parametrize("two_texts", [True, False])
def test_it_is_hugging_face_s_bert_with_both_heads(
    twins, tokens, segments, two_texts
):
    ours, theirs = twins
    real, segments = tokens != PAD, segments if two_texts else None
    asked = {"attention_mask": real.long(), "token_type_ids": segments}
    states = ours.states(tokens, segments)
    expected = theirs(tokens, **asked)
    body = theirs.bert(tokens, **asked)
    torch.testing.assert_close(states[real], body.last_hidden_state[real])
    torch.testing.assert_close(ours.pooled(states), body.pooler_output)
    torch.testing.assert_close(
        ours(tokens, segments)[real], expected.prediction_logits[real]
    )
    torch.testing.assert_close(
        ours.next_logits(states).flip(-1), expected.seq_relationship_logits
    )


def test_its_pre_training_loss_and_gradients_are_hugging_face_s(
    twins, tokens, segments
):
    ours, theirs = twins
    inputs, target = mask_tokens(
        tokens, generator(), vocab_size=VOCAB, share=0.4
    )
    is_next = torch.tensor([True, False, False, True, False])
    total, count = PreTraining(ours)(inputs, segments, target, is_next)
    expected = theirs(
        inputs,
        attention_mask=(inputs != PAD).long(),
        token_type_ids=segments,
        labels=target.masked_fill(target == PAD, -100),
        next_sentence_label=(~is_next).long(),
    ).loss
    # The sum is taken in 32 bits.
    torch.testing.assert_close(
        (total / count).double(), expected, atol=0, rtol=1e-6
    )
    (mine,) = torch.autograd.grad(total / count, ours.embedding.weight)
    word = theirs.bert.embeddings.word_embeddings
    (other,) = torch.autograd.grad(expected, word.weight)
    torch.testing.assert_close(mine, other, atol=1e-7, rtol=1e-5)


def test_base_has_the_published_number_of_parameters():
    from transformers import BertConfig, BertForPreTraining, BertModel

    with torch.device("meta"):
        ours = BERT(BERTConfig.base())
        body, whole = BertModel(BertConfig()), BertForPreTraining(BertConfig())
    heads = [ours.transform, ours.next_proj]
    heads = sum(p.numel() for head in heads for p in head.parameters())
    heads += ours.logits_bias.numel()
    count = sum(p.numel() for p in ours.parameters())
    # 110 M: the tables, twelve layers and the pooler; heads are not counted.
    assert count - heads == body.num_parameters() == 109_482_240
    assert count == whole.num_parameters() == 110_106_428
    d = 768
    tables = (30_522 + 512 + 2) * d + 2 * d
    layer = 4 * (d * d + d) + 2 * d * 3072 + 3072 + d + 4 * d
    assert count - heads == tables + 12 * layer + d * d + d


# Where it differs from the published code: measured.


def test_the_published_gelu_is_half_a_thousandth_off_at_most():
    x = torch.linspace(-10, 10, 100_001, dtype=torch.float64)
    gap = (F.gelu(x) - F.gelu(x, approximate="tanh")).abs().max()
    assert 4e-4 < gap < 5e-4


def test_linear_maps_start_with_xavier_and_tables_with_two_hundredths():
    made = BERT(BERTConfig.tiny(997))
    # Of a width of 64 to 64, and to 128.
    up_proj = made.encoder.layers[1].feed_forward.up_proj
    for linear_map, wanted in ((made.pooler[0], 1 / 8), (up_proj, 96**-0.5)):
        torch.testing.assert_close(
            linear_map.weight.std().item(), wanted, rtol=0.05, atol=0
        )
    for table in (made.embedding, made.positions):
        torch.testing.assert_close(
            table.weight.std().item(), 0.02, rtol=0.05, atol=0
        )


# Invariants.


def test_every_position_depends_on_both_sides_and_on_no_padding(tokens):
    ours = model()
    found = []
    hook = ours.norm.register_forward_hook(lambda *a: found.append(a[2]))
    states = ours.states(tokens)
    hook.remove()
    for place in range(SEQ):
        (gradient,) = torch.autograd.grad(
            states[1, place, 0], found[0], retain_graph=True
        )
        reached = gradient.abs().sum(-1) > 0
        wanted = torch.zeros_like(tokens, dtype=torch.bool)
        wanted[1] = tokens[1] != PAD
        wanted[1, place] = True
        assert torch.equal(reached, wanted)


def test_padding_at_the_end_changes_nothing_before_it(tokens):
    ours, longer = model(), F.pad(tokens, (0, 4), value=PAD)
    torch.testing.assert_close(ours(longer)[:, :SEQ], ours(tokens))


def test_another_pad_is_hidden_and_without_one_nothing_is(tokens):
    real = tokens != PAD
    odd = tokens.masked_fill(~real, 3)
    ours, other = model(), model(pad=3)
    other.load_state_dict(ours.state_dict())
    torch.testing.assert_close(other(odd)[real], ours(tokens)[real])
    open_to_all = model(pad=None)
    open_to_all.load_state_dict(ours.state_dict())
    gap = (open_to_all(tokens) - ours(tokens)).abs().amax((1, 2))
    assert torch.equal(gap > 1e-6, (tokens == PAD).any(1))


def test_order_and_segment_of_a_token_matter(tokens, segments):
    ours = model()
    plain = ours(tokens)
    torch.testing.assert_close(ours(tokens, torch.zeros_like(tokens)), plain)
    assert not torch.allclose(ours(tokens, segments), plain)
    turned = tokens.roll(1, 1)
    assert not torch.allclose(ours(turned), plain.roll(1, 1))


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_a_row_that_is_all_padding_is_finite_and_so_is_its_gradient(tokens):
    tokens[2] = PAD
    ours = model()
    with torch.autograd.detect_anomaly(check_nan=True):
        ours(tokens).sum().backward()
    used = [p.grad for p in ours.parameters() if p.grad is not None]
    assert all(gradient.isfinite().all() for gradient in used)


def test_logits_of_picked_states_are_the_picked_logits(tokens):
    ours = model()
    states = ours.states(tokens)
    picked = tokens == 7
    assert picked.any()
    torch.testing.assert_close(
        ours.logits(states[picked]), ours(tokens)[picked]
    )


def test_one_table_reads_and_writes(tokens):
    ours = model()
    states = ours.states(tokens).detach()
    before = ours.logits(states)
    with torch.no_grad():
        ours.embedding.weight[7] += 1
    changed = (ours.logits(states) - before).abs().amax((0, 1)) > 0
    assert changed.nonzero().flatten().tolist() == [7]


def test_the_classifier_reads_the_pooled_cls(tokens, segments):
    classifier = unhidden(Classifier(BERT(config()), CLASSES).double())
    bert, out = classifier.bert, classifier.out_proj
    pooled = torch.tanh(bert.pooler[0](bert.states(tokens, segments)[:, 0]))
    expected = pooled @ out.weight.T + out.bias
    got = classifier(tokens, segments)
    assert got.shape == (BATCH, CLASSES)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("part", ["embeddings", "scores", "sums", "pooled"])
def test_dropout_acts_on_each_of_its_places_in_training_only(tokens, part):
    noisy = Classifier(BERT(config(dropout=0.5)), CLASSES).eval()
    assert torch.equal(noisy(tokens), noisy(tokens))
    layer = noisy.bert.encoder.layers[1]
    {
        "embeddings": noisy.bert.dropout,
        "scores": layer.self_attention,
        "sums": layer.feed_forward_residual.dropout,
        "pooled": noisy.dropout,
    }[part].train()
    assert not torch.equal(noisy(tokens), noisy(tokens))


# The objectives.


@pytest.fixture
def holes(tokens):
    return mask_tokens(tokens, generator(), vocab_size=VOCAB, share=0.4)


def test_the_masked_loss_is_cross_entropy_over_the_chosen(holes):
    ours, (inputs, target) = model(), holes
    objective = MaskedModelling(ours)
    total, count = objective(inputs, target)
    assert count == objective.count(inputs, target) == (target != PAD).sum()
    expected = F.cross_entropy(
        ours(inputs).flatten(0, 1),
        target.flatten(),
        ignore_index=PAD,
        reduction="sum",
    )
    # The sum is taken in 32 bits.
    torch.testing.assert_close(total.double(), expected, atol=0, rtol=1e-6)


def test_a_position_that_was_not_chosen_gets_no_gradient(holes):
    ours, (inputs, target) = model(), holes
    states = ours.states(inputs).detach().requires_grad_()
    ours.states = lambda tokens, segments=None: states
    total, _ = MaskedModelling(ours)(inputs, target)
    total.backward()
    reached = states.grad.abs().sum(-1) > 0
    assert torch.equal(reached, target != PAD)


def test_pre_training_adds_the_mean_over_tokens_and_that_over_pairs(
    holes, segments
):
    ours, (inputs, target) = model(), holes
    is_next = torch.tensor([True, False, False, True, False])
    objective = PreTraining(ours)
    given = inputs, segments, target, is_next
    total, count = objective(*given)
    assert count == objective.count(*given) == (target != PAD).sum()
    words = ours(inputs, segments)[target != PAD]
    expected = F.cross_entropy(words, target[target != PAD])
    yes = ours.next_logits(ours.states(inputs, segments)).log_softmax(-1)[:, 1]
    no = ours.next_logits(ours.states(inputs, segments)).log_softmax(-1)[:, 0]
    expected = expected - torch.where(is_next, yes, no).mean()
    torch.testing.assert_close(
        (total / count).double(), expected, atol=0, rtol=1e-6
    )


def test_classifying_is_cross_entropy_over_the_examples(tokens):
    classifier = unhidden(Classifier(BERT(config()), CLASSES).double())
    classes = torch.tensor([3, 0, 1, 1, 2])
    objective = Classifying(classifier)
    total, count = objective(tokens, classes)
    assert count == objective.count(tokens, classes) == BATCH
    expected = F.cross_entropy(classifier(tokens), classes, reduction="sum")
    torch.testing.assert_close(total.double(), expected, atol=0, rtol=1e-6)


# It learns. Two kinds of nouns; a verb and a look go with one kind only.

PEOPLE, *KINDS_OF = [
    words.split()
    for words in (
        "I you we they",
        "feed stroke call",
        "buy paint carry",
        "hungry sleepy wild",
        "new broken cheap",
        "cat dog bird horse cow goat duck sheep mouse rabbit",
        "car book lamp chair clock table cup phone plate box",
    )
]
VERBS, LOOKS, NOUNS = KINDS_OF[:2], KINDS_OF[2:4], KINDS_OF[4:]
KINDS = Vocabulary(["<mask>", "see", "the", *PEOPLE, *chain(*KINDS_OF)])


def sentences(number, seed):
    """They feed the hungry cat; we buy the new lamp."""
    drawn = generator(seed)

    def any_of(words):
        return words[torch.randint(len(words), (), generator=drawn)]

    made = []
    for kind in torch.randint(2, (number,), generator=drawn).tolist():
        verb, look, noun = (any_of(x[kind]) for x in (VERBS, LOOKS, NOUNS))
        made.append([any_of(PEOPLE), verb, "the", look, noun])
    return batch(made, KINDS)


def labelled(first, last):
    """We see the cat: the kind is the noun's, and nothing else tells it."""
    made = [
        (kind, [who, "see", "the", noun])
        for kind in (0, 1)
        for noun in NOUNS[kind][first:last]
        for who in PEOPLE
    ]
    kinds, texts = zip(*made, strict=True)
    return batch(texts, KINDS), torch.tensor(kinds)


@pytest.fixture(scope="module")
def trained():
    """150 steps of 64 sentences; two seconds."""
    torch.manual_seed(0)
    made, drawn = BERT(BERTConfig.tiny(len(KINDS))), generator(0)
    fit(
        made,
        [
            mask_tokens(tokens, drawn, vocab_size=len(KINDS))
            for tokens in sentences(150 * 64, seed=0).split(64)
        ],
        rate=lambda step: linear(step, 150, peak=5e-3, warmup=20),
        objective=MaskedModelling(made),
    )
    return made.eval()


def test_a_masked_word_is_guessed_about_as_well_as_can_be(trained):
    tokens = sentences(1000, seed=9)
    inputs, target = mask_tokens(tokens, generator(), vocab_size=len(KINDS))
    asked = inputs == MASK
    with torch.no_grad():
        right = (trained(inputs).argmax(-1) == target)[asked].double().mean()
    commonest = target[asked].bincount().max() / asked.sum()
    # "the" is sure; a person is 1 of 4, verb and look 1 of 3, a noun 1 of 10.
    ceiling = (1 / 4 + 1 / 3 + 1 + 1 / 3 + 1 / 10) / 5
    assert commonest < 0.25
    assert ceiling - 0.08 < right < ceiling + 0.03


def accuracy_after_tuning(bert, steps):
    classifier = Classifier(bert, 2)
    fit(
        classifier,
        [labelled(0, 3)] * steps,
        rate=lambda step: 1e-3,
        objective=Classifying(classifier),
    )
    classifier.eval()
    found = []
    for texts, kinds in (labelled(0, 3), labelled(3, 10)):
        with torch.no_grad():
            right = classifier(texts).argmax(-1) == kinds
        found.append(right.double().mean().item())
    return found


def test_pre_training_knows_the_kind_of_words_that_no_label_mentions(trained):
    seen, unseen = accuracy_after_tuning(copy.deepcopy(trained), steps=10)
    assert seen == 1
    assert unseen >= 0.95
    torch.manual_seed(0)
    scratch = BERT(BERTConfig.tiny(len(KINDS)))
    seen, unseen = accuracy_after_tuning(scratch, steps=50)
    assert seen == 1
    assert unseen <= 0.8


def test_fine_tuning_moves_the_pre_trained_weights(trained):
    tuned = copy.deepcopy(trained)
    accuracy_after_tuning(tuned, steps=1)
    for before, after in zip(
        trained.encoder.parameters(), tuned.encoder.parameters(), strict=True
    ):
        assert not torch.equal(before, after)


def stories(number, seed):
    """Two sentences each, about one person and one noun."""
    drawn = generator(seed)

    def any_of(words):
        return words[torch.randint(len(words), (), generator=drawn)]

    made = []
    for kind in torch.randint(2, (number,), generator=drawn).tolist():
        verb, look, noun = (any_of(x[kind]) for x in (VERBS, LOOKS, NOUNS))
        who = any_of(PEOPLE)
        saw, did = [who, "see", "the", noun], [who, verb, "the", look, noun]
        made.append([KINDS.encode(saw), KINDS.encode(did)])
    return sentence_pairs(made, drawn)


def test_pre_training_tells_which_sentence_comes_next():
    torch.manual_seed(0)
    made, drawn, steps = BERT(BERTConfig.tiny(len(KINDS))), generator(0), 300
    batches = []
    for step in range(steps):
        tokens, segments, is_next = stories(64, seed=step)
        read, target = mask_tokens(tokens, drawn, vocab_size=len(KINDS))
        batches.append((read, segments, target, is_next))
    fit(
        made,
        batches,
        rate=lambda step: linear(step, steps, peak=3e-3, warmup=20),
        objective=PreTraining(made),
    )
    made.eval()
    tokens, segments, is_next = stories(400, seed=steps)
    with torch.no_grad():
        says = made.next_logits(made.states(tokens, segments)).argmax(-1)
    assert (says.bool() == is_next).double().mean() >= 0.9


# Bad input.


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_len": 0}, r"max_len: expected at least 1, got 0"),
        ({"num_segments": 0}, r"num_segments: expected at least 1, got 0"),
        ({"num_heads": 3}, r"num_heads: expected a divisor of d_model = 26"),
        ({"pad": 19}, r"pad: expected an id from 0 to below 19.*got 19"),
    ],
)
def test_a_size_that_cannot_be_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        config(**changes)


@pytest.mark.bad_input
def test_what_is_no_config_is_named():
    with pytest.raises(TypeError, match=r"expected a BERTConfig, got dict"):
        BERT({"vocab_size": VOCAB})


@pytest.mark.bad_input
def test_what_it_cannot_read_is_named(tokens, segments):
    ours = model()
    with pytest.raises(ValueError, match=r"tokens: expected ids from 0 to 18"):
        ours(tokens + VOCAB)
    with pytest.raises(ValueError, match=r"tokens: expected \(batch, seq\)"):
        ours(tokens[0])
    with pytest.raises(TypeError, match=r"tokens: expected a tensor of token"):
        ours(tokens.double())
    with pytest.raises(ValueError, match=r"at most max_len=17 positions.*21"):
        ours(tokens.repeat(1, 3))
    with pytest.raises(
        ValueError, match=r"segments: expected one for each.*\(5, 7\).*\(5, 3\)"
    ):
        ours(tokens, segments[:, :3])
    with pytest.raises(ValueError, match=r"segments: expected ids from 0 to 1"):
        ours(tokens, segments + 1)
    with pytest.raises(ValueError, match=r"x: expected vectors of width 26"):
        ours.logits(torch.ones(3, 5, dtype=torch.float64))
    with pytest.raises(TypeError, match=r"x: expected torch.float64, got"):
        ours.pooled(torch.ones(3, 5, D_MODEL))
    with pytest.raises(ValueError, match=r"x: expected \(batch, seq, d_model"):
        ours.pooled(torch.ones(3, D_MODEL, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"num_classes: expected at least 1"):
        Classifier(ours, 0)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 4}, r"vocab_size: expected more than the 4 special"),
        ({"vocab_size": 11}, r"tokens: expected ids from 0 to 10.*got 11"),
        ({"share": 1.5}, r"share: expected a number from 0 to 1, got 1\.5"),
        ({"share": -0.1}, r"share: expected a number from 0 to 1, got -0\.1"),
    ],
)
def test_what_cannot_be_masked_is_named(changes, message):
    tokens = torch.arange(12)[None]
    given = {"vocab_size": VOCAB} | changes
    with pytest.raises(ValueError, match=message):
        mask_tokens(tokens, generator(), **given)


@pytest.mark.bad_input
def test_masking_refuses_what_are_no_ids():
    with pytest.raises(TypeError, match=r"tokens: expected a tensor of int"):
        mask_tokens(torch.ones(2, 3), generator(), vocab_size=VOCAB)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([[[5], [6]]], r"documents: expected at least two.*got 1"),
        ([[[5], [6]], []], r"empty document or sentence in document 1"),
        ([[[5], []], [[6]]], r"empty document or sentence in document 0"),
        ([[[5]], [[6]]], r"expected one with two sentences, got only single"),
    ],
)
def test_documents_that_make_no_pairs_are_named(documents, message):
    with pytest.raises(ValueError, match=message):
        sentence_pairs(documents, generator())


@pytest.mark.bad_input
def test_a_batch_without_a_chosen_token_is_refused(tokens):
    ours, nothing = model(), torch.full_like(tokens, PAD)
    with pytest.raises(ValueError, match=r"target: expected at least one chos"):
        MaskedModelling(ours)(tokens, nothing)
    with pytest.raises(ValueError, match=r"expected a token that is no paddi"):
        fit(
            ours,
            [(tokens, nothing)],
            rate=lambda step: 1e-3,
            objective=MaskedModelling(ours),
        )
    with pytest.raises(ValueError, match=r"target: expected one for each.*7\)"):
        MaskedModelling(ours)(tokens, nothing[:, 1:])


@pytest.mark.bad_input
def test_what_cannot_be_drawn_from_or_learnt_from_is_named():
    tokens = torch.tensor([[BOS, 5, 7, EOS]])
    with pytest.raises(TypeError, match="generator: expected a "):
        mask_tokens(tokens, None, vocab_size=11)
    with pytest.raises(TypeError, match="share: expected a number, got 'x'"):
        mask_tokens(tokens, torch.Generator(), vocab_size=11, share="x")
    with pytest.raises(TypeError, match="bert: expected the class BERT, got"):
        Classifier(None, 3)
    with pytest.raises(TypeError, match="model: expected the class BERT, got"):
        MaskedModelling(None)
    model = BERT(BERTConfig.tiny(11))
    with pytest.raises(ValueError, match="target: expected ids from 0 to 10"):
        MaskedModelling(model)(tokens, tokens + 9)
    with pytest.raises(ValueError, match="classes: expected ids from 0 to 2"):
        Classifying(Classifier(model, 3))(tokens, torch.tensor([3]))
    with pytest.raises(TypeError, match="is_next: expected bool, got "):
        PreTraining(model)(tokens, tokens * 0, tokens, torch.tensor([5]))
