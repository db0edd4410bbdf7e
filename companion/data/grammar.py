"""A grammar that writes each sentence in Chinese and in English at once.

Each function below yields one family of sentences, every one it can build.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

__all__ = [
    "Text",
    "belongings",
    "counted",
    "deeds",
    "doubts",
    "likes",
    "occasions",
    "things",
    "whereabouts",
    "with_article",
]

Text = tuple[str, str]


class Person(NamedTuple):
    """Who does it, whose it is, and the verbs that go with it."""

    zh: str
    en: str
    owns: str
    do: str
    have: str


class Noun(NamedTuple):
    """A thing: what it is counted with, called, can be, and where it is."""

    measure: str
    one: str
    many: str
    adjectives: str
    seen: str


class Verb(NamedTuple):
    """Something done: its Chinese past, its English, to what, and where."""

    past: str
    did: str
    do: str
    objects: str
    places: str


PEOPLE = [
    Person("我", "I", "my", "do", "have"),
    Person("你", "you", "your", "do", "have"),
    Person("他", "he", "his", "does", "has"),
    Person("她", "she", "her", "does", "has"),
    Person("我们", "we", "our", "do", "have"),
    Person("他们", "they", "their", "do", "have"),
    Person("老师", "the teacher", "the teacher's", "does", "has"),
]
# Nobody asks what they themselves like, have or did.
# 爱 goes with the plain and the small: 爱大狗 sounds stilted.
LOVED = {form + noun for noun in "猫狗鸟马花书" for form in ("", "小")}
ASKED = [who for who in PEOPLE if who.zh not in ("我", "我们")]
ADJECTIVES = {
    "小": "little",
    "大": "big",
    "白": "white",
    "黑": "black",
    "红": "red",
    "新": "new",
    "旧": "old",
}
NOUNS = {
    "猫": Noun("只", "cat", "cats", "小白黑", "公园 街上 花园里"),
    "狗": Noun("只", "dog", "dogs", "小大白黑", "公园 街上 花园里"),
    "鸟": Noun("只", "bird", "birds", "小白", "公园 花园里"),
    "马": Noun("匹", "horse", "horses", "小白黑", "公园"),
    "花": Noun("朵", "flower", "flowers", "小红白", "公园 花园里"),
    # 黑车 would be an unlicensed taxi.
    "车": Noun("辆", "car", "cars", "新旧红白", "街上"),
    "书": Noun("本", "book", "books", "新旧", "桌上"),
    "画": Noun("幅", "picture", "pictures", "新旧", ""),
    "鱼": Noun("条", "fish", "fish", "小大", ""),
    "苹果": Noun("个", "apple", "apples", "大红", "桌上"),
    "鸡蛋": Noun("个", "egg", "eggs", "", "桌上"),
}
PLACES = {
    "公园": "in the park",
    "公园里": "in the park",
    "花园里": "in the garden",
    "街上": "in the street",
    "桌上": "on the table",
    "图书馆": "in the library",
    "商店": "at the shop",
    "学校": "at school",
    "家": "at home",
}
TIMES = {
    "": "",
    "今天": "today",
    "昨天": "yesterday",
    "上周": "last week",
    "昨晚": "last night",
    "今天早上": "this morning",
}
VERBS = [
    Verb("看到", "saw", "see", "猫 狗 鸟 马 花 车", ""),
    Verb("买了", "bought", "buy", "花 书 画 鱼 苹果 鸡蛋", "商店"),
    Verb("吃了", "ate", "eat", "鱼 苹果 鸡蛋", "家"),
    Verb("看了", "read", "read", "书", "家 学校 公园 图书馆"),
    Verb("画了", "drew", "draw", "猫 狗 鸟 马 花", "家 学校"),
]


def things(noun: str) -> Iterator[tuple[str, str, str]]:
    """Yield the noun alone and with each adjective: zh, en one and many."""
    it = NOUNS[noun]
    yield noun, it.one, it.many
    for zh in it.adjectives:
        en = ADJECTIVES[zh]
        yield zh + noun, f"{en} {it.one}", f"{en} {it.many}"


def with_article(thing: str) -> str:
    """Put a or an before the thing."""
    return f"{'an' if thing[0] in 'aeiou' else 'a'} {thing}"


def counted(noun: str) -> Iterator[Text]:
    """Count one, two and three of it: 一只小猫, a little cat."""
    measure = NOUNS[noun].measure
    for zh, one, many in things(noun):
        yield f"一{measure}{zh}", with_article(one)
        yield f"两{measure}{zh}", f"two {many}"
        yield f"三{measure}{zh}", f"three {many}"


def likes() -> Iterator[Text]:
    """Say who likes what, or does not: 我爱小猫, I love little cats."""
    for who, noun in product(PEOPLE, NOUNS):
        s = "s" if who.do == "does" else ""
        for zh, _, many in things(noun):
            if zh == "画":
                continue  # 喜欢画 is also to like drawing.
            if zh in LOVED:
                yield f"{who.zh}爱{zh}", f"{who.en} love{s} {many}"
            yield f"{who.zh}喜欢{zh}", f"{who.en} like{s} {many}"
            yield f"{who.zh}不喜欢{zh}", f"{who.en} {who.do} not like {many}"
            if who in ASKED:
                yield f"{who.zh}喜欢{zh}吗", f"{who.do} {who.en} like {many}"


def occasions() -> Iterator[tuple[Person, Verb, str, Text, Text]]:
    """Yield who did what to which noun; when and where, in both languages."""
    for who, verb, when in product(PEOPLE, VERBS, TIMES.items()):
        for noun in verb.objects.split():
            places = verb.places or NOUNS[noun].seen
            yield who, verb, noun, when, ("", "")
            for place in places.split():
                yield who, verb, noun, when, (f"在{place}", PLACES[place])


def deeds() -> Iterator[Text]:
    """Say who did what: 我今天在公园看到一只小猫, I saw a little cat."""
    for who, verb, noun, (time, when), (place, where) in occasions():
        for zh, en in counted(noun):
            chinese = f"{who.zh}{time}{place}{verb.past}{zh}"
            yield chinese, f"{who.en} {verb.did} {en} {where} {when}"


def doubts() -> Iterator[Text]:
    """Say what was not done (没, then the place), and ask if it was (吗)."""
    for who, verb, noun, (time, when), (place, where) in occasions():
        start, base = f"{who.zh}{time}", verb.past.removesuffix("了")
        rest = f"{verb.do} any {NOUNS[noun].many} {where} {when}"
        yield f"{start}没{place}{base}{noun}", f"{who.en} did not {rest}"
        if who in ASKED:
            yield f"{start}{place}{base}{noun}了吗", f"did {who.en} {rest}"


def belongings() -> Iterator[Text]:
    """Say who has what: 他有两本新书, he has two new books; 这是我的猫."""
    for who, noun in product(PEOPLE, "猫狗鸟马车书画"):
        for zh, en in counted(noun):
            yield f"{who.zh}有{zh}", f"{who.en} {who.have} {en}"
        for zh, one, many in things(noun):
            some = f"any {many}" if noun in "书画" else with_article(one)
            rest = f"have {some}"
            yield f"{who.zh}没有{zh}", f"{who.en} {who.do} not {rest}"
            if who in ASKED:
                yield f"{who.zh}有{zh}吗", f"{who.do} {who.en} {rest}"
            zh, en = f"{who.zh}的{zh}", f"{who.owns} {one}"
            for it, this in ("这", "this"), ("那", "that"):
                yield f"{it}是{zh}", f"{this} is {en}"
                yield f"{it}不是{zh}", f"{this} is not {en}"
                yield f"{it}是{zh}吗", f"is {this} {en}"


def whereabouts() -> Iterator[Text]:
    """Say where things are: 花园里有两只小鸟, there are two birds."""
    for noun, it in NOUNS.items():
        for place in it.seen.replace("公园", "公园里").split():
            where = PLACES[place]
            for zh, en in counted(noun):
                be = "is" if zh[0] == "一" else "are"
                yield f"{place}有{zh}", f"there {be} {en} {where}"
            for zh, one, many in things(noun):
                yield f"{place}没有{zh}", f"there are no {many} {where}"
                yield f"{place}有{zh}吗", f"are there any {many} {where}"
                for who in PEOPLE if noun in "猫狗车书" else []:
                    whose, mine = f"{who.zh}的{zh}", f"{who.owns} {one}"
                    yield f"{whose}在{place}", f"{mine} is {where}"
                    yield f"{whose}不在{place}", f"{mine} is not {where}"
                    yield f"{whose}在{place}吗", f"is {mine} {where}"
