from dataclasses import replace

import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.engines.inprocess import InProcess
from feddg.errors import ConfigError, SiteFailure
from feddg.models import Anatomy
from feddg.packets import Reply, State
from feddg.weights import Weights
from tests import toy
from tests.methods import quadratic


class Net(nn.Module):
    anatomy = Anatomy("head")

    def __init__(self, outputs=2):
        super().__init__()
        self.body = nn.Linear(2, 3)
        self.head = nn.Linear(3, outputs)

    def forward(self, x):
        return self.head(self.body(x))


def merged(counts, says, net=None):
    """From a model of zeros; a's reply is all ones, b's all zeros: what comes out is a's share."""
    start = Weights.of(net or Net())
    zeros, ones = (replace(start, vector=torch.full_like(start.vector, v)) for v in (0.0, 1.0))
    replies = [
        Reply(site=name, model=model, weight=say).noting("fedcsa", torch.tensor(count))
        for name, model, count, say in zip("ab", (ones, zeros), counts, says, strict=True)
    ]
    method = compose("fedcsa")
    job = replace(quadratic.run("fedcsa").job(None, 0), model=net or Net())
    [after] = InProcess().work([method.aggregate(State(model=zeros), replies, job)])
    if isinstance(after, Exception):
        raise after
    return after.model.views()


def test_reference_by_hand():
    """a has 3 and 1 examples of the two classes, b has 2 and 6.

    a's share of row 0 is 3/5, of row 1 is 1/7; elsewhere 4/12.
    """
    got = merged([(3, 1), (2, 6)], [4.0, 8.0])
    rows = torch.tensor([3 / 5, 1 / 7])
    torch.testing.assert_close(got["head.weight"], rows[:, None].expand(2, 3))
    torch.testing.assert_close(got["head.bias"], rows)
    torch.testing.assert_close(got["body.weight"], torch.full((3, 2), 1 / 3))


def test_reference_with_another_say_by_hand():
    """As GA sets it, 1/2 each: row 0 is 1/2 * 3/4 against 1/2 * 2/8, so 3/4; row 1 1/4 to 3/4."""
    got = merged([(3, 1), (2, 6)], [0.5, 0.5])
    torch.testing.assert_close(got["head.bias"], torch.tensor([3 / 4, 1 / 4]))
    torch.testing.assert_close(got["body.bias"], torch.full((3,), 1 / 2))


def test_a_class_that_nobody_has_is_averaged():
    got = merged([(4, 0), (8, 0)], [4.0, 8.0])
    torch.testing.assert_close(got["head.bias"], torch.full((2,), 1 / 3))


def test_sends_its_counts():
    run = toy.run(compose("fedcsa"), 1)
    [done] = toy.history(run)
    for site, reply in zip(run.sites, done.replies, strict=True):
        assert reply.notes["fedcsa"].tolist() == [
            (site.train.y == c).sum().item() for c in range(3)
        ]


def test_changes_the_head_only():
    csa, plain = (toy.final(compose(m), 1).state.model.views() for m in ("fedcsa", "fedavg"))
    assert {k for k in csa if not torch.equal(csa[k], plain[k])} == {"head.weight", "head.bias"}


def test_regression_is_refused():
    with pytest.raises(SiteFailure, match="labels are numbers"):
        quadratic.history("fedcsa", 1)


def test_a_head_of_other_rows_is_named():
    with pytest.raises(ConfigError, match=r"head.weight has 3 rows, but there are 2 classes"):
        merged([(3, 1), (2, 6)], [4.0, 8.0], Net(3))


def test_another_merge_is_refused():
    with pytest.raises(ConfigError, match="how the replies become one model"):
        compose("fedcsa+fedmedian")
