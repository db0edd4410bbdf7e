"""What kind of component a module is, and what its contracts then say.

judge          the way in: recognises a module, and has it judged as that
calls          how it wants to be called
recognition    which component it is, of those that take vectors
vectors        judges what takes vectors, and refuses what only looks like it
ids            judges what takes ids: translators and language models
unmasked       a language model that has to be given its causal mask
norms          judges what norms, also where only its name says so

What has to be completed before it can be judged:

keywords       what takes its arguments only by their names
narrow         heads that are narrower than what goes in
embeddings     positions that are added to the rows of ids
lone_block     a causal block, in a language model that is made around it
padding        a model whose padding is another id than 0
beside_memory  a decoder, or its layer, beside a memory that stays the same
one_row_each   what makes one row of a sentence, as a classifier
"""
