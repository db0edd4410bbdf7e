"""What a terminal is sent of somebody else's text."""

import unicodedata

from companion.sanitize import sanitize


def test_nothing_is_left_that_a_terminal_would_obey():
    every = "".join(map(chr, range(0x3000)))
    kept = sanitize(every)
    controls = {c for c in kept if unicodedata.category(c) == "Cc"}
    assert controls == {"\t", "\n"}
    turning = {"L", "R", "AL"}  # Letters of scripts; what else turns, is gone.
    for c in kept:
        kind = unicodedata.bidirectional(c)
        letter = kind in turning and unicodedata.category(c) != "Cf"
        assert letter or kind[:2] not in ("LR", "RL", "PD", "FS"), hex(ord(c))


def test_a_screen_a_clipboard_and_an_order_of_letters_stay_as_they_are():
    assert sanitize("a\x1b[2Jb\x9b1A") == "a[2Jb1A"
    assert sanitize("\x1b]52;c;aGk=\x07") == "]52;c;aGk="
    assert sanitize("user\u202e\u2066 // admin\u2069") == "user // admin"


def test_letters_of_every_script_stay():
    text = "猫 é e\u0301 שלום مرحبا 👩\u200d👧 ∞\t−\n"
    assert sanitize(text) == text


def test_what_cannot_be_written_is_a_question_mark():
    name = b"caf\xe9.py".decode("utf-8", "surrogateescape")
    assert sanitize(name).encode() == b"caf?.py"
