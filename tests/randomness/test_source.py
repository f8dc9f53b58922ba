"""The random source: what it promises about replay, sharing, forking and secrecy."""

from __future__ import annotations

import copy
import ctypes
import json
import math
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from dpselect.errors import ArgumentError, ForkedSourceError
from dpselect.privacy.boundary import run_confined
from dpselect.randomness import keyed_source, process, resolve, source as source_module, system_source
from dpselect.randomness.session import Session, answers


class Coin(Session):
    @answers
    def toss(self):
        return system_source().bits(1)


_SOURCE = system_source()


def _drawn(_):
    return _SOURCE.bytes(32).hex()


def keyed(key):
    """A source with this key of AES itself."""
    return source_module.RandomSource(key)


def in_forked_child(work, fork=os.fork):
    """What `work()` returns in a forked child, through a pipe; a text for the exception it raised."""
    read, write = os.pipe()
    child = fork()
    if child == 0:
        try:
            answer = work()
        except BaseException as error:
            answer = type(error).__name__
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


def test_a_key_replays_and_another_does_not():
    for draw in (
        lambda s: s.bytes(100).hex(),
        lambda s: s.uniform(50).tolist(),
        lambda s: s.normal((5, 10)).tolist(),
        lambda s: s.permutation(30).tolist(),
        lambda s: [s.below(10**30) for _ in range(5)],
    ):
        assert draw(keyed_source(7)) == draw(keyed_source(7))
        assert draw(keyed_source(7)) != draw(keyed_source(8))
        assert draw(system_source()) != draw(system_source())


def test_keys_of_different_types_are_different():
    draws = {keyed_source(key).bytes(16) for key in (1, "1", b"1", "int:1", b"int:1", -1)}
    assert len(draws) == 6
    for wrong in (True, 1.0, None, [1]):
        with pytest.raises(TypeError):
            keyed_source(wrong)


def test_the_same_calls_give_the_same_bytes_across_the_buffer_boundary():
    sizes = [1, 4095, 3, 4096, 4097, 10000, 0, 17, 4000, 200]
    first, second = keyed_source("a"), keyed_source("a")
    assert [first.bytes(n) for n in sizes] == [second.bytes(n) for n in sizes]
    assert [len(keyed_source("a").bytes(n)) for n in sizes] == sizes


def test_small_portions_come_from_one_stream():
    whole = keyed_source("a").bytes(4096)
    pieces = keyed_source("a")
    assert b"".join(pieces.bytes(n) for n in (1, 100, 3995)) == whole
    # a portion that crosses the refill uses up what is left over first: nothing is skipped or repeated
    crossing = keyed_source("a")
    crossing.bytes(4090)
    tail = crossing.bytes(100)
    assert tail[:6] == whole[4090:]
    assert crossing.bytes(50) not in whole + tail


@pytest.mark.parametrize("make", [lambda: keyed_source(3), system_source])
def test_no_part_of_the_stream_is_handed_out_twice(make):
    source = make()
    small = [source.bytes(n) for n in (30, 60, 37, 1)]
    assert [len(portion) for portion in small] == [30, 60, 37, 1]
    portions = [source.bytes(n) for n in (4000, 5000, 96, 64, 9000, 4096, 333) * 3]
    text = b"".join([*small, *portions])
    blocks = {text[i : i + 16] for i in range(len(text) - 16)}
    assert len(blocks) == len(text) - 16


def test_a_negative_size_never_winds_the_stream_back():
    source = keyed_source(1)
    before = source.bytes(64)
    for call in (
        lambda: source.bytes(-8),
        lambda: source.words(-1),
        lambda: source.uniform(-2),
        lambda: source.bits(-1),
    ):
        with pytest.raises(ArgumentError):
            call()
    assert before + source.bytes(64) == keyed_source(1).bytes(128)


def test_spawned_streams_depend_on_key_and_label_only():
    fresh, used = keyed_source(5), keyed_source(5)
    used.normal(1000)
    used.spawn("other").bytes(10)
    assert fresh.spawn("trial").bytes(32) == used.spawn("trial").bytes(32)
    labels = ["trial", "trial ", "1", 1, -1, "", "int:1", 11]
    assert len({fresh.spawn(label).bytes(16) for label in labels}) == len(labels)
    assert fresh.spawn("a").spawn("b").bytes(16) != fresh.spawn("b").spawn("a").bytes(16)
    assert fresh.spawn("a").bytes(16) != keyed_source(6).spawn("a").bytes(16)
    assert fresh.spawn("a").replayable


def test_a_numpy_label_is_the_whole_number_it_equals():
    assert keyed_source(5).spawn(np.int64(3)).bytes(16) == keyed_source(5).spawn(3).bytes(16)
    assert keyed_source(5).spawn(np.str_("x")).bytes(16) == keyed_source(5).spawn("x").bytes(16)
    for wrong in (True, 1.5, None, b"x"):
        with pytest.raises(TypeError):
            keyed_source(5).spawn(wrong)


def test_a_system_source_spawns_fresh_ones():
    source = system_source()
    assert source.spawn("a").bytes(16) != source.spawn("a").bytes(16)
    assert not source.spawn("a").replayable


def test_resolve_takes_a_source_or_nothing():
    source = keyed_source(1)
    assert resolve(source) is source
    assert not resolve(None).replayable
    for wrong in (0, np.random.default_rng(0), np.random, "secret"):
        with pytest.raises(TypeError, match="RandomSource"):
            resolve(wrong)


def test_repr_and_errors_tell_nothing_of_the_key():
    secret = "correct horse battery staple"
    source = keyed_source(secret)
    for text in (repr(source), str(source), f"{source.spawn('x')!r}"):
        assert text == "<RandomSource keyed, replayable>"
    assert repr(system_source()) == "<RandomSource system entropy>"
    assert not hasattr(source, "__dict__")


def test_no_pickle_and_no_copy():
    for source in (keyed_source(1), system_source()):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError, match="RandomSource"):
                pickle.dumps(source, protocol)
        with pytest.raises(TypeError, match="RandomSource"):
            copy.copy(source)


def test_scikit_learn_clones_share_the_source():
    class Estimator(BaseEstimator):
        def __init__(self, random=None):
            self.random = random

    source = keyed_source(1)
    assert clone(Estimator(source)).random is source
    assert copy.deepcopy({"a": [source]})["a"][0] is source


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
class TestFork:
    def test_a_keyed_source_refuses_in_the_child(self):
        source = keyed_source(1)
        source.bytes(10)
        assert in_forked_child(lambda: source.bytes(8).hex()) == ForkedSourceError.__name__
        assert len(source.bytes(8)) == 8

    def test_a_system_source_takes_a_fresh_key_in_the_child(self):
        source = system_source()
        source.bytes(10)  # leaves buffered bytes that both would otherwise hand out
        first, second = (in_forked_child(lambda: source.bytes(32).hex()) for _ in range(2))
        assert len({first, second, source.bytes(32).hex()}) == 3

    @pytest.mark.parametrize("fork", [os.fork, "libc"], ids=["os.fork", "fork of C"])
    def test_a_process_number_that_is_used_again_repeats_nothing(self, fork, monkeypatch):
        """The number of an ancestor after numbers have wrapped, and number 1 of each nested PID namespace."""
        if fork == "libc":
            if sys.platform != "linux":
                pytest.skip("only Linux wipes pages in forked children")
            fork = ctypes.PyDLL(None).fork  # keeps the lock of the interpreter, and tells it nothing
        monkeypatch.setattr(process, "_identity", process._identity)  # put back, or keyed sources of other tests end
        monkeypatch.setattr(os, "getpid", lambda: 1)
        system, keyed, session = system_source(), keyed_source(1), Coin()
        system.bytes(10)
        children = [in_forked_child(lambda: system.bytes(32).hex(), fork) for _ in range(2)]
        grandchild = in_forked_child(lambda: in_forked_child(lambda: system.bytes(32).hex(), fork), fork)
        assert len({*children, grandchild, system.bytes(32).hex()}) == 4
        assert in_forked_child(lambda: keyed.bytes(32).hex(), fork) == ForkedSourceError.__name__
        assert in_forked_child(session.toss, fork) == ForkedSourceError.__name__
        assert session.toss() in (0, 1)

    @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
    @pytest.mark.full
    def test_children_of_multiprocessing_draw_apart(self, method):
        with multiprocessing.get_context(method).Pool(3) as pool:
            drawn = pool.map(_drawn, range(12), chunksize=1)
        assert len({*drawn, _drawn(0)}) == 13

    def test_a_thread_that_forks_leaves_a_child_that_draws_anew(self):
        source, answers = system_source(), []
        source.bytes(10)
        thread = threading.Thread(target=lambda: answers.append(in_forked_child(lambda: source.bytes(32).hex())))
        thread.start()
        thread.join()
        assert answers[0] != source.bytes(32).hex()

    def test_a_program_that_is_started_inherits_nothing(self):
        """`posix_spawn` and `vfork` run another program; `preexec_fn` runs Python in the child before that."""
        source = system_source()
        source.bytes(10)
        read, write = os.pipe()
        told = [sys.executable, "-c", ""]
        subprocess.run(told, preexec_fn=lambda: os.write(write, source.bytes(32)), check=True)
        assert os.read(read, 32) != source.bytes(32)
        os.close(read)
        os.close(write)

    def test_a_run_that_forks_does_not_continue_the_mechanism_in_the_child(self):
        def forks():
            child = os.fork()
            if child:
                os.waitpid(child, 0)
            return child

        read, write = os.pipe()
        run_confined(forks, None)
        os.write(write, b"x")  # by the parent only
        assert os.read(read, 10) == b"x"
        os.close(read)
        os.close(write)

    def test_a_lock_held_at_the_fork_does_not_hang_the_child(self):
        source = system_source()
        with source._lock:
            answer = in_forked_child(lambda: source._lock.acquire(blocking=False))
        assert answer is True

    def test_a_child_may_make_its_own(self):
        expected = keyed_source(2).bytes(8).hex()
        assert in_forked_child(lambda: keyed_source(2).bytes(8).hex()) == expected


def test_the_first_bytes_of_a_system_source_are_the_kernels_own(monkeypatch):
    """A source that draws a number or two makes no cipher; one that draws more takes a key of its own."""
    asked = []
    monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or bytes([len(asked)]) * count)
    source = system_source()
    assert asked == []
    assert source.bytes(40) == b"\1" * 40
    assert source.bytes(24) == b"\1" * 24
    assert asked == [64]
    assert source.bytes(40) == keyed(b"\2" * 32).bytes(40)
    assert asked == [64, 32]
    assert system_source().bytes(100) == keyed(b"\3" * 32).bytes(100)


def test_coins_of_one_over_e_take_the_bytes_of_integers_below():
    """Against a draw below 2, 3, ... for each coin, with buffers that end at any place and limits on the number."""
    one, other = keyed_source("coins"), keyed_source("coins")
    for turn in range(3000):
        most = (math.inf, 0, 1, 2)[turn % 4]
        heads = 0
        while heads < most and plain_unit_coin(other):
            heads += 1
        assert one.unit_coins(most) == heads
    assert one.bits(64) == other.bits(64)


def plain_unit_coin(source):
    k = 1
    while not source.below(k):
        k += 1
    return k % 2 == 1


def test_threads_share_one_stream_without_repeats():
    source = keyed_source(9)
    found: list[bytes] = []

    def work():
        mine = [source.bytes(16) for _ in range(2000)]
        found.extend(mine)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(set(found)) == 16000
    alone = keyed_source(9)
    assert set(found) == {alone.bytes(16) for _ in range(16000)}


def test_shapes_and_types():
    source = keyed_source(1)
    for draw in (source.uniform, source.normal, source.exponential, source.laplace, lambda n: source.gamma(3, n)):
        assert draw(4).shape == (4,)
        assert draw((2, 3)).shape == (2, 3)
        assert draw(np.int64(4)).shape == (4,)
        assert draw(0).shape == (0,)
        assert draw(5).dtype == np.float64
    assert source.words((2, 2)).dtype == np.uint64
    assert source.bernoulli(0.5, (2, 3)).dtype == bool
    assert source.permutation(0).size == 0
    assert source.below(1) == 0
    assert source.bits(0) == 0


def test_bad_arguments_are_named():
    source = keyed_source(1)
    for probability in (-0.1, 1.1, float("nan")):
        with pytest.raises(ArgumentError, match="probability"):
            source.bernoulli(probability, 3)
    for bound in (0, -1):
        with pytest.raises(ArgumentError, match="bound"):
            source.below(bound)
    with pytest.raises(ArgumentError, match="shape"):
        source.gamma(0, 3)


class ExtremeWords(source_module.RandomSource):
    """A source whose words are all zeros, all ones, or any one given byte."""

    __slots__ = ("byte",)

    def bytes(self, count):
        return self.byte * count


@pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
def test_no_draw_is_infinite_or_out_of_range_at_the_ends(byte):
    source = ExtremeWords(bytes(32))
    source.byte = byte
    uniform = float(source.uniform(1)[0])
    assert 0.0 < uniform < 1.0
    assert uniform in (2.0**-53, 1.0 - 2.0**-53)
    assert np.all(np.isfinite([source.laplace(1), source.exponential(1), source.gamma(2, 1)]))
    assert float(source.exponential(1)[0]) > 0.0
    assert not source.bernoulli(0.0, 1)[0]
    assert source.bernoulli(1.0, 1)[0]
    assert source.bernoulli(1.0 - 2.0**-53, 1)[0] == (byte == b"\x00")
