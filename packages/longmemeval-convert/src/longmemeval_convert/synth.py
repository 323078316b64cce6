"""A synthetic file in LongMemEval's format: seeded, streamed, with every oddity of the published ones.

With 500 questions its counts are those of a release: 30 of abstention, 419 of the 470 others with evidence of the
user's (`releases` has the types), 41 with evidence dated after them, 13 with a session that comes again, 32 whole
numbers as answers. What copies add is there as well: null marks, turns as texts of JSON, half of a surrogate pair.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from longmemeval_convert.releases import ABSTENTION, TYPES

#: Sessions of a history beside the evidence, least and most: none, or at least six.
FILLERS = {"s": (35, 56), "m": (466, 486), "oracle": (0, 0)}

_ASSISTANT_ONLY = 51
_COMMON = ("the", "and", "i", "you", "to", "about", "is", "it", "say", "what", "did")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SYLLABLES = tuple(a + b for a in "bdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "ar", "en"))


class _Kind(NamedTuple):
    """What a question is: its place among those of its type that have an answer, or of abstention."""

    type: str
    place: int
    abstention: bool


def _kinds() -> list[_Kind]:
    return [
        _Kind(kind, place, place >= count - ABSTENTION.get(kind, 0))
        for kind, count in TYPES.items()
        for place in range(count)
    ]


class _Session(NamedTuple):
    id: str
    turns: list[str]


class Generator:
    """Makes the records of a file. `records` is the same for the same arguments, on every machine."""

    def __init__(
        self, variant: str, seed: int, questions: int = 500, fillers: tuple[int, int] | None = None
    ) -> None:
        self.variant, self.seed, self.questions = variant, seed, questions
        self._fillers = fillers or FILLERS[variant]
        self._kinds = _kinds()

    def chunks(self) -> Iterator[str]:
        """The text of the file, a record at a time."""
        for number in range(self.questions):
            yield ("[\n" if number == 0 else ",\n") + self.record(number)
        yield "\n]"

    @cached_property
    def _words(self) -> list[str]:
        chance = self._chance("words")
        made = ("".join(chance.choices(_SYLLABLES, k=2 + n % 3)) for n in range(20_000))
        return list(dict.fromkeys([*_COMMON, *made]))

    @cached_property
    def _sentences(self) -> list[str]:
        """Sentences as JSON has them within quotes, of words whose frequencies fall as in a language (Zipf)."""
        chance = self._chance("sentences")
        weights = list(accumulate(1 / rank for rank in range(1, len(self._words) + 1)))
        made = []
        for number in range(4000):
            words = chance.choices(self._words, cum_weights=weights, k=chance.randint(7, 21))
            text = f"{' '.join(words).capitalize()}{'. ' if number % 5 else '?'}".rstrip()
            text += " It was 20 °C." if number % 200 == 0 else ' "So it is."' if number % 90 == 0 else ""
            made.append(json.dumps(text)[1:-1])
        return made

    def _chance(self, *what: object) -> random.Random:
        return random.Random("/".join(map(str, (self.seed, *what))))

    def record(self, number: int) -> str:
        """The text of one record, indented by four as in the published files."""
        kind = self._kinds[
            number * len(self._kinds) // self.questions if self.questions < 500 else number % 500
        ]
        chance = self._chance("question", number)
        name = self._name(number, kind)
        first, second = chance.sample(self._words[300:3000], 2)
        value = chance.choice(self._words)
        # Of some questions the evidence has other words, and other sessions have words of the question.
        subject = chance.choice((f"{first} {second}", f"{first} {second}", first, second, value))
        evidence = self._evidence(number, kind, subject, value, chance)
        fillers = self._history(number, (first, second), chance)
        start = datetime(2023, 5, 1) + timedelta(minutes=chance.randrange(40_000))
        sessions = evidence + fillers
        minutes = sorted(chance.sample(range(14_400), len(sessions)))
        if self.variant == "oracle":
            minutes.reverse()
        else:
            chance.shuffle(sessions)
        dates = [start + timedelta(minutes=minute) for minute in minutes]
        asked = max(dates) + timedelta(minutes=chance.randint(5, 900))
        if _late(kind):
            asked = max(d for d, s in zip(dates, sessions, strict=True) if s in evidence) - timedelta(
                minutes=32
            )
        whole = (
            kind.type == "multi-session" and not kind.abstention and kind.place % 3 == 0 and kind.place < 96
        )
        answer: object = 1300 + number if whole else f"It is {value}."
        if kind.abstention:
            answer = f"You did not mention the {second}."
        fields = [
            ("question_id", json.dumps(name)),
            ("question_type", json.dumps(kind.type)),
            ("question", json.dumps(f"What did I say about {first} and the {second}?")),
            ("question_date", json.dumps(_date(asked))),
            ("answer", json.dumps(answer)),
        ]
        gold = ("answer_session_ids", _list([json.dumps(s.id) for s in evidence], 8))
        history = [
            ("haystack_dates", _list([json.dumps(_date(date)) for date in dates], 8)),
            ("haystack_session_ids", _list([json.dumps(session.id) for session in sessions], 8)),
            ("haystack_sessions", _list([_list(session.turns, 12) for session in sessions], 8)),
        ]
        fields += [*history, gold] if self.variant == "oracle" else [gold, *history]
        body = ",\n".join(f'        "{key}": {text}' for key, text in fields)
        return f"    {{\n{body}\n    }}"

    def _name(self, number: int, kind: _Kind) -> str:
        twin = number % 50 == 1  # all but its last digit is that of the one before
        digits = _hex(self.seed, "question", number - twin)
        digits = digits[:7] + f"{(int(digits[7], 16) + twin) % 16:x}"
        prefix = "gpt4_" if kind.type == "temporal-reasoning" and number % 3 == 0 and not twin else ""
        digits += f"{number // 500:x}" if number >= 500 else ""
        return f"{prefix}{digits}{'_abs' if kind.abstention else ''}"

    def _evidence(
        self, number: int, kind: _Kind, subject: str, value: str, chance: random.Random
    ) -> list[_Session]:
        count = {"multi-session": chance.choice((2, 2, 2, 3, 4, 5)), "knowledge-update": 2}.get(kind.type, 1)
        if kind.type == "temporal-reasoning":
            count = chance.choice((1, 2, 2, 3))
        ending = "_abs" if kind.abstention else ""
        code = _hex(self.seed, "evidence", number)
        of_assistant = kind.type == "single-session-assistant"
        made = []
        for place in range(count):
            said = json.dumps(f"By the way, about {subject}: it is {value} since week {place + 1}.")[1:-1]
            turns = []
            there = chance.randrange(6)
            for turn in range(12):
                role = "assistant" if turn % 2 else "user"
                here = turn // 2 == there and (role == "assistant") == of_assistant
                # Of the assistant's questions a few have evidence on both sides.
                here = here or (of_assistant and turn // 2 == there and kind.place >= _ASSISTANT_ONLY)
                mark = here and not (kind.abstention and place)
                turns.append(_turn(role, self._talk(role, chance, said if here else None), mark))
            made.append(_Session(f"answer_{code}{ending}" + (f"_{place + 1}" if count > 1 else ""), turns))
        return made

    def _history(self, number: int, words: Sequence[str], chance: random.Random) -> list[_Session]:
        """Sessions beside the evidence, which other questions have, too; and the oddities among them."""
        made = [self._filler(n) for n in chance.sample(range(30_000), chance.randint(*self._fillers))]
        if not made:
            return []
        for place, word in enumerate(chance.choices(words, k=3), 3):
            made[place] = _Session(
                f"{made[place].id}_w", [_turn("user", f"Tell me of {word}."), *made[place].turns]
            )
        if number % 40 == 5:
            made.append(made[0])
        if number % 42 == 7:
            made[1] = _Session(made[1].id + "_b", [*made[1].turns, _turn("user", "  ")])
        if number % 125 == 3:
            made[2] = _Session(made[2].id + "_e", [])
        if number % 50 == 9:
            nulls = [_turn(role, "All is well.", None, null=True) for role in ("user", "assistant")]
            made[3] = _Session(made[3].id + "_n", nulls)
        if number % 100 == 11:
            texts = [
                json.dumps(json.dumps({"role": "user", "content": f"Packed {place}."})) for place in range(3)
            ]
            made[4] = _Session(made[4].id + "_t", [f"                {text}" for text in texts])
        if number % 500 == 13:
            made[5] = _Session(made[5].id + "_u", [_turn("user", "Cut off \\ud83d")])
        return made

    def _filler(self, number: int) -> _Session:
        chance = self._chance("filler", number)
        code = _hex(self.seed, "filler", number)
        letters = "".join(chance.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", k=7))
        name = (f"sharegpt_{letters}_{number % 7}", f"ultrachat_{number:06d}", f"{code}_{number % 5}")[
            number % 3
        ]
        roles = ["user", "assistant"] * chance.choice((2, 3, 4, 5, 5, 6, 7, 9))
        if number % 12 == 0:
            roles.pop(0 if number % 24 else -1)  # of odd length, some with the assistant first
        if number % 97 == 0:
            roles = ["assistant"]
        if number % 89 == 0:
            roles.insert(0, "user")
        return _Session(name, [_turn(role, self._talk(role, chance)) for role in roles])

    def _talk(self, role: str, chance: random.Random, said: str | None = None) -> str:
        count = chance.randint(1, 4) if role == "user" else chance.randint(7, 32)
        sentences: Sequence[str] = chance.choices(self._sentences, k=count)
        if said is not None:
            sentences = [*sentences[: count // 2], said, *sentences[count // 2 :]]
        return (
            " ".join(sentences)
            if count < 8
            else "\\n\\n".join((" ".join(sentences[:6]), " ".join(sentences[6:])))
        )


def _late(kind: _Kind) -> bool:
    if kind.abstention:
        return False
    return (kind.type == "temporal-reasoning" and kind.place < 40) or kind == _Kind("multi-session", 1, False)


def _hex(*what: object) -> str:
    return hashlib.sha256("/".join(map(str, what)).encode()).hexdigest()[:8]


def _date(moment: datetime) -> str:
    return f"{moment:%Y/%m/%d} ({_DAYS[moment.weekday()]}) {moment:%H:%M}"


def _list(items: Sequence[str], indent: int) -> str:
    """A list of texts of JSON, of which those of more than one line are indented already."""
    if not items:
        return "[]"
    inner = " " * (indent + 4)
    lines = [item if item.startswith(inner) else inner + item for item in items]
    return "[\n" + ",\n".join(lines) + "\n" + " " * indent + "]"


def _turn(role: str, content: str, mark: bool | None = None, *, null: bool = False) -> str:
    """A turn, indented; `content` is escaped."""
    pad = " " * 20
    marked = "" if mark is None and not null else f',\n{pad}"has_answer": {json.dumps(mark)}'
    return (
        f'                {{\n{pad}"role": "{role}",\n{pad}"content": "{content}"{marked}\n                }}'
    )
