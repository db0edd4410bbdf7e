"""Masked tokens and dropped spans got wrong."""

import random

import torch
from contracts.odd import wrong
from contracts.right.variants import by_dictionary, by_loop, by_two_draws

from companion.zoo.corruption import masked
from companion.zoo.spans import filled, gaps, spans

# Masking


def masking(says):
    return wrong("mask_tokens", says)


@masking("^None of the chosen tokens becomes a random word: 10 % do. Of")
def never_another(tokens, generator):
    return masked(tokens, generator, other=0.0)


@masking("^80 % become a random word: 80 % become MASK")
def shares_exchanged(tokens, generator):
    return masked(tokens, generator, hidden=0.1, other=0.8)


@masking("^Nothing is hidden: 80 % of the chosen become MASK")
def never_hidden(tokens, generator):
    return masked(tokens, generator, hidden=0.0, other=0.0)


@masking("^Of 1257 chosen tokens 48.2 %, 23.9 %, 27.8 % became MASK")
def half_and_quarters(tokens, generator):
    return masked(tokens, generator, hidden=0.49, other=0.25)


@masking("^Of 8192 words 40.5 % are chosen: expected 15 %, and chance expla")
def too_many(tokens, generator):
    return masked(tokens, generator, share=0.4)


@masking("^Of 8192 words 0.0 % are chosen")
def nobody(tokens, generator):
    return masked(tokens, generator, share=0.0)


@masking("^Of .* It is 15 % of all positions: padding does not count")
def of_all_positions(tokens, generator):
    """So many holes as all positions would have, put into the words."""
    is_word = tokens >= 4
    share = 0.15 * is_word.numel() / is_word.sum().clamp_min(1)
    return masked(tokens, generator, share=min(1.0, float(share)))


@masking("^The target holds -100, which PyTorch's cross-entropy ignores by")
def ignored_by_pytorch(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    return inputs, target.masked_fill(target == 0, -100)


@masking("^Most words of the input are padding: have inputs and target changed")
def parts_exchanged(tokens, generator):
    return by_two_draws(tokens, generator)[::-1]


@masking("^A random word is no special id.* between 4 and 100")
def one_id_too_many(tokens, generator):
    return masked(tokens, generator, high=101)


@masking("^The first word or the last is never drawn: .*between 4 and 98")
def one_id_too_few(tokens, generator):
    return masked(tokens, generator, high=99)


@masking("^All random words are in the text, which has the lower half")
def words_of_the_text(tokens, generator):
    inputs, target = masked(tokens, generator, other=0.0)
    words = tokens[tokens >= 4]
    if len(words):
        places = torch.randint(len(words), tokens.shape, generator=generator)
        fate = torch.rand(tokens.shape, generator=generator) < 0.5
        drawn = (target != 0) & (inputs != 3) & fate
        inputs = torch.where(drawn, words[places], inputs)
    return inputs, target


@masking("^It draws from torch's own random numbers, so that nobody can rep")
def generator_left_out(tokens, generator):
    luck = torch.rand(tokens.shape)
    return masked(
        tokens, generator, share=1.0, may=lambda x: (x >= 4) & (luck < 0.15)
    )


@masking("^It draws from torch's own random numbers, so that nobody can rep")
def generator_left_out_of_the_words(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    words = torch.randint_like(tokens, 4, 100)
    drawn = (target != 0) & (inputs != 3) & (inputs != tokens)
    return torch.where(drawn, words, inputs), target


@masking("^The second call differs: .* Does it draw from Python's or NumPy's")
def by_pythons_random(tokens, generator):
    chosen = torch.tensor([random.random() < 0.15 for _ in tokens.flatten()])
    return masked(
        tokens,
        generator,
        share=1.0,
        may=lambda x: (x >= 4) & chosen.view(x.shape),
    )


@masking("^Two generators with different seeds gave the same: does it make one")
def generator_of_its_own(tokens, generator):
    return by_two_draws(tokens, torch.Generator().manual_seed(2))


@masking(r"^It changes `tokens` in place: .* assign to `tokens\[...\]`")
def written_over(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    tokens[:] = inputs
    return tokens, target


@masking("^In 16 sentences .* places 128 … 191 was chosen: are the first ones")
def the_first_words(tokens, generator):
    """15 % of each sentence, one after the other, with a random start."""
    is_word = tokens >= 4
    count = is_word.sum(-1, keepdim=True)
    late = torch.randint(2, count.shape, generator=generator)
    place = is_word.cumsum(-1) - 1 - late
    taken = (place >= 0) & (place < 0.15 * count)
    return masked(tokens, generator, share=1.0, may=lambda x: (x >= 4) & taken)


@masking("^It raised ValueError in line . of .*`batch, seq = tokens.shape`")
def two_axes_only(tokens, generator):
    batch, seq = tokens.shape
    return by_two_draws(tokens.view(batch, seq), generator)


@masking("^Of 2048 words .* % are chosen")
def a_sentence_is_a_batch(tokens, generator):
    """Half of the sentences of one token are left alone."""
    if tokens.ndim > 1:
        return by_two_draws(tokens, generator)
    return masked(tokens, generator, share=0.07)


@masking("^It raised RuntimeError .*`places = torch.multinomial")
def a_fixed_number(tokens, generator):
    """So many of each sentence, drawn by ``multinomial``."""
    rows = tokens.reshape(-1, tokens.shape[-1])
    chosen = torch.zeros_like(rows, dtype=torch.bool)
    for row, taken in zip(rows, chosen, strict=True):
        is_word = (row >= 4).float()
        count = max(1, round(0.15 * int(is_word.sum())))
        places = torch.multinomial(is_word, count, generator=generator)
        taken[places] = True
    chosen = chosen.view(tokens.shape)
    return masked(tokens, generator, share=1.0, may=lambda x: chosen)


@masking("^At sentence 0, position 0 the token is 1, .* is nothing to choose")
def one_at_least(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    if not (tokens >= 4).any():
        inputs[..., 0], target[..., 0] = 3, tokens[..., 0]
    return inputs, target


@masking("^It returned a Tensor: expected .inputs, target. in the shape of")
def inputs_only(tokens, generator):
    return by_two_draws(tokens, generator)[0]


@masking("^It returned 3 things: expected .inputs, target.")
def with_the_choice(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    return inputs, target, target != 0


@masking("^It returned bool for int64: expected the number type of `tokens`")
def the_choice_for_a_target(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    return inputs, target != 0


@masking("^It returned shape .*It returns what was chosen only: keep all posit")
def answers_only(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    return inputs, target[target != 0]


# Spans


def corrupting(says):
    return wrong("span_corrupt", says)


@corrupting("^In the target each sentinel follows its span: it comes before it")
def names_behind(tokens, dropped, sentinel):
    source, _ = by_loop(tokens, dropped, sentinel)
    target, before = [], False
    for token, out in zip(tokens.tolist(), dropped.tolist(), strict=True):
        if before and not out:
            target.append(sentinel)
            sentinel -= 1
        target += [token] * out
        before = out
    target += [sentinel] * before
    return source, torch.tensor(target, dtype=torch.long)


@corrupting("^The target is the source of the opposite mask, .* is .11, 12")
def opposite_source(tokens, dropped, sentinel):
    source = by_loop(tokens, dropped, sentinel)[0]
    return source, by_loop(tokens, ~dropped, sentinel)[0]


@corrupting("^Source and target have changed places: the source comes first")
def pair_exchanged(tokens, dropped, sentinel):
    return by_loop(tokens, dropped, sentinel)[::-1]


@corrupting("^The first sentinel is skipped: the first span gets `sentinel` it")
def first_sentinel_skipped(tokens, dropped, sentinel):
    return by_loop(tokens, dropped, sentinel - 1)


@corrupting("^The text is .*, without a gap, .* target was .., expected .99")
def nothing_is_nothing(tokens, dropped, sentinel):
    source, target = by_loop(tokens, dropped, sentinel)
    return source, target if dropped.any() else target[:0]


@corrupting("^The text is .*, without any of its tokens, .* source was .., ")
def all_is_lost(tokens, dropped, sentinel):
    source, target = by_loop(tokens, dropped, sentinel)
    return source[:0] if dropped.all() else source, target


@corrupting("^The text is .11, 12, 11, 12, 12, 11, 11., without its places 1")
def found_by_value(tokens, dropped, sentinel):
    """A word is looked up by its id, which finds the first one like it."""
    words = tokens.tolist()
    gone = [bool(dropped[words.index(word)]) for word in words]
    return by_loop(tokens, torch.tensor(gone), sentinel)


@corrupting("^The text is .* the target was .*, expected")
def at_most_four_spans(tokens, dropped, sentinel):
    """Right where the text is short."""
    if len(tokens) > 15:
        return spans(tokens, dropped, sentinel, last=False)
    return by_loop(tokens, dropped, sentinel)


@corrupting(r"^It returned shape \(1, 7\): expected one axis. The function is")
def a_batch_of_one(tokens, dropped, sentinel):
    source, target = by_loop(tokens, dropped, sentinel)
    return source[None], target[None]


@corrupting("^It returned a Tensor: expected .source, target., two tensors")
def source_only(tokens, dropped, sentinel):
    return by_loop(tokens, dropped, sentinel)[0]


# Spans put back


def restoring(says):
    return wrong("span_restore", says)


def part(sequence, i):
    return sequence[i] if 0 <= i < len(sequence) else []


@restoring("^The source comes back as it was: put the spans where their")
def source_itself(source, target, sentinel):
    return source


@restoring("^The sentinels are deleted, and the spans stay lost: the target")
def sentinels_deleted(source, target, sentinel):
    return filled(source, target, sentinel, lambda i: [])


@restoring("^Only the first sentinel is replaced: the next one is `sentinel - ")
def one_sentinel_only(source, target, sentinel):
    spans = gaps(target, sentinel)
    return filled(
        source, target, sentinel, lambda i: [sentinel - i] if i else spans[0]
    )


@restoring("^Every span lands one sentinel too early. From the source")
def one_too_early(source, target, sentinel):
    spans = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: part(spans, i + 1))


@restoring("^Every span lands one sentinel too late. From the source")
def one_too_late(source, target, sentinel):
    spans = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: part(spans, i - 1))


@restoring("^Every span is read backwards. From the source")
def read_backwards(source, target, sentinel):
    spans = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: spans[i][::-1])


@restoring("^What follows the last sentinel of the source is lost. From the s")
def end_lost(source, target, sentinel):
    text = by_dictionary(source, target, sentinel).tolist()
    while source.numel() and int(source[-1]) not in target.tolist():
        source = source[:-1]
        text.pop()
    return torch.tensor(text, dtype=torch.long)


@restoring("^The target's last sentinel is in the text: it says only that")
def last_sentinel_left(source, target, sentinel):
    spans = gaps(target, sentinel)
    end = [int(target[-1])]
    return filled(
        source,
        target,
        sentinel,
        lambda i: spans[i] + end * (i == len(spans) - 1),
    )


@restoring("^From the source .99, 13, 14, 15., .* it made .12, 13, 14, 15.:")
def begins_with_a_word(source, target, sentinel):
    """It takes for granted that no text begins with a span."""
    text = by_dictionary(source, target, sentinel)
    return text[1:] if int(source[0]) == sentinel and len(source) > 1 else text


@restoring("^From the source .11, 12, 13, 14, 15., the target .99. and")
def a_span_at_least(source, target, sentinel):
    text = by_dictionary(source, target, sentinel)
    return text if sentinel in source.tolist() else text[:0]


@restoring("^From the source .99., the target .99, 11, 12, 13, 14, 15, 98. and")
def a_word_at_least(source, target, sentinel):
    text = by_dictionary(source, target, sentinel)
    return text if len(source) > 1 else source


@restoring("^From the source .* and the sentinel 99 it made")
def short_texts_only(source, target, sentinel):
    text = by_dictionary(source, target, sentinel)
    return text[:22] if len(text) == 23 else text


@restoring(r"^It returned shape \(1, 8\): expected one axis")
def restored_batch(source, target, sentinel):
    return by_dictionary(source, target, sentinel)[None]


@restoring("^It returned a tuple, not a tensor: expected the text, a tensor of")
def text_and_count(source, target, sentinel):
    return by_dictionary(source, target, sentinel), len(source)
