"""What somebody's code is, found out by what it takes and returns.

make      builds a class with small sizes, from the names of its arguments
kinds     tells what a module is: attention, a feed-forward network, a norm, …
heads     judges attention without weights that takes its heads as an axis
keywords  calls by place what takes its arguments only by their names
rotary    makes of a rotary class what turns vectors at given positions
warmup    asks an optimizer's or a schedule's class for the rate at a step
limits    tells what keeps a model from being judged: a memory, or one length
raising   tells whether what raises could be meant to be called otherwise
readings  tells what True means in masks, or asks
rebuild   builds a class once more: with dropout, and with its own defaults
models    judges a whole model, and the parts that it is made of
"""
