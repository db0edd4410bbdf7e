"""What somebody's code is, found out by what it takes and returns.

verdict      what can come of judging somebody's code
arguments    what a module wants to be given
sizes        what sizes arguments are given, by their names
make         builds a class with small sizes, from the names of its arguments
each_length  builds what takes one length alone anew for each
kinds        tells what a module is: attention, a network, a norm, …
heads        judges attention without weights, with an axis for its heads
rotary       makes of a rotary class what turns vectors at given positions
mask_makers  calls what makes a translator's masks as `combine_masks`
filters      calls what filters logits as `sampling_filter`
warmup       asks an optimizer's or a schedule's class for the rate at a step
limits       tells what keeps a model from being judged: a memory, one length
raising      tells whether what raises could be meant to be called otherwise
readings     tells what True means in masks, or asks
published    tells what is right in what bears a published name
unheard      finds what is taken, and never used
anew         builds a class once more, and sees what contracts do not show
models       judges a whole model, and the parts that it is made of
"""
