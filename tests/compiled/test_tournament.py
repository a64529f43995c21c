"""The program `azjax arena`: its tables."""

import re

import guard
from azjax.cli import arena
from azjax.players.arena import Match, Tally, rate
from trained import compiling_once

MATCHES = [
    Match("a", "best", Tally(10, 20, 70, 9), Tally(0, 20, 80, 7), False),
    Match("a", "worst", Tally(1, 0, 1, 2), Tally(2, 0, 0, 2), True),
    Match("best", "worst", Tally(1200, 0, 0, 900), Tally(900, 100, 200, 800), False),
]


def test_matches_and_ratings_are_printed(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    arena._show_matches(MATCHES)
    arena._show_ratings(rate(MATCHES))
    lines = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert lines[0].split() == [
        *["player", "against", "moves", "won", "drawn", "lost", "score", "[95%]", "different"]
    ]
    rows = [line.split() for line in lines if line[:2].strip() and "[" in line or " worst " in line]
    assert rows[1][:7] == ["a", "best", "first", "10", "20", "70", "0.200"]
    assert rows[2][:7] == ["a", "best", "second", "0", "20", "80", "0.100"]
    # Without randomness there is no interval.
    assert rows[3] == ["a", "worst", "first", "1", "0", "1", "0.500", "2"]
    assert rows[5][:7] == ["best", "worst", "first", "1,200", "0", "0", "1.000"]
    (said,) = [line for line in lines if "further games would be identical: a – worst." in line]
    best = re.findall(r"^ *(\S+) +([+-]\d+) +([+-]\d+) … ([+-]\d+) *$", "\n".join(lines), re.M)
    assert [row[0] for row in best] == ["best", "a", "worst"]
    assert all(int(low) < int(elo) < int(high) for _, elo, low, high in best)
    assert max(len(line) for line in lines if line is not said) <= 80


def test_a_match_is_played_and_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # The game would be that of the newest run.
    keys, play = [], arena.round_robin
    monkeypatch.setattr(arena, "round_robin", lambda *a: keys.append(a[3]) or play(*a))
    line = "random perfect --games 20 --openings 100 --opening-plies 1"
    with guard.sharing(), compiling_once():
        assert arena.main(line.split()) == 0
    out, err = capsys.readouterr()
    assert err == "there are only 9 such openings: all are played\n"
    rows = [line.split() for line in out.splitlines() if re.search(r"(first|second) ", line)]
    for number in (0, 1):
        assert rows[number][:2] == ["random", "perfect"]
        assert sum(map(int, rows[number][3:6])) == 18 and int(rows[number][3]) == 0  # 9 or 18 each.
    # The seed determines the games.
    monkeypatch.setattr(arena, "round_robin", lambda *a: keys.append(a[3]) or MATCHES)
    for seed in (0, 3):
        assert arena.main(["random", "perfect", "--seed", str(seed)]) == 0
    assert keys[0] == keys[1] != keys[2]
