"""The log of a run: a row a step, seen at once, and refused if damaged."""

import pytest

from companion.training import Step, read_log
from companion.training.log import Log


def test_who_looks_on_sees_each_row_when_it_is_written(tmp_path):
    with Log(tmp_path, 0) as log:
        for step in (1, 2):
            log.add(Step(step, 2.5, 1e-3, 0.5, 60), 100.0, None)
            assert [row["step"] for row in read_log(tmp_path)][-1] == step


@pytest.mark.bad_input
@pytest.mark.parametrize("row", ["1,2,3,x,5,6,", "y,2,3,4,5,6,"])
def test_a_damaged_row_of_a_log_is_named_with_its_file(tmp_path, row):
    head = "step,loss,rate,gradient,tokens,speed,validation"
    (tmp_path / "log.csv").write_text(f"{head}\n{row}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"log\.csv: .*numbers, got '[xy]'"):
        read_log(tmp_path)
