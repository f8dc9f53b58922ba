"""Ranking noisy numbers: the order, ties that need more bits, and how many bits are asked for."""

from fractions import Fraction

from dpselect.mechanisms.noisy_ranking import Contender, ranking


class Known:
    """Noise of a known value, enclosed within 2^-bits on either side."""

    def __init__(self, value):
        self.value, self.asked = Fraction(value), []

    def enclosure(self, bits):
        self.asked.append(bits)
        return self.value - Fraction(1, 1 << bits), self.value + Fraction(1, 1 << bits)


def contenders(*scores, scale=1):
    return [Contender(index, Fraction(0), Known(score), Fraction(scale)) for index, score in enumerate(scores)]


def test_the_largest_come_first_and_only_so_many():
    assert ranking(contenders(3, 9, -2, 5), 2) == [1, 3]
    assert ranking(contenders(3, 9, -2, 5), 9) == [1, 3, 0, 2]
    assert ranking([], 3) == []
    assert ranking(contenders(3, 9), 0) == []


def test_one_contender_is_first_without_a_look_at_its_noise():
    only = contenders(1)
    assert (ranking(only, 1), ranking(only, 0)) == ([0], [])
    assert only[0].noise.asked == []


def test_numbers_that_64_bits_do_not_separate_get_more():
    close = contenders(1, 1 + Fraction(1, 1 << 150))
    assert ranking(close, 2) == [1, 0]
    assert max(close[0].noise.asked) == 256


def test_a_noisy_score_is_the_centre_plus_the_scaled_noise():
    one = Contender(0, Fraction(5), Known(3), Fraction(2))
    assert one.enclosure(10) == (11 - Fraction(2, 1024), 11 + Fraction(2, 1024))
    other = Contender(1, Fraction(11) + Fraction(1, 1 << 100), Known(0))
    assert ranking([one, other], 1) == [1]
    assert ranking([one, Contender(1, Fraction(11) - Fraction(1, 1 << 100), Known(0))], 1) == [0]
