"""Short invented Chinese news with headlines.

A text has two or three sentences. One sentence tells the event. The other sentences, before or after it, are about
something else and have other numbers and names. The headline states who, what and how much of the event in fewer
characters, and leaves out the rest. A model has to find the event, copy names and numbers, and learn the short words
for the long words.
"""

from dataclasses import dataclass
from typing import Iterator, Tuple

from fairseq_capsule_lab.corpora.chinese_headlines.names import (
    ANIMALS,
    CITIES,
    INDUSTRIES,
    PROVINCES,
    company,
    person,
)
from fairseq_capsule_lab.corpora.dice import Dice

_DAYS = ("今天", "昨天", "本周一", "本周三", "本周五", "上周末")
_QUARTERS = ("第一季度", "第二季度", "第三季度", "第四季度")


@dataclass(frozen=True)
class Event:
    """An event. `text` is its sentence without the full stop; `aside` is a sentence that may stand beside it."""

    text: str
    headline: str
    aside: str


def article_pairs(seed: int) -> Iterator[Tuple[str, str]]:
    """An infinite sequence of (text, headline) pairs, the same for a seed."""
    dice = Dice(seed)
    while True:
        event = dice.choose(EVENTS)(dice)
        sentences = [event.text]
        if dice.chance(0.6):
            sentences.append(event.aside)
        if len(sentences) == 1 or dice.chance(0.4):
            sentences.insert(dice.choose((0, len(sentences))), _beside(dice))
        yield "。".join(sentences) + "。", event.headline


def _number(dice: Dice, least: int, most: int) -> int:
    return least + dice.choose(range(most - least + 1))


def _percent(dice: Dice) -> str:
    return f"{_number(dice, 1, 49)}.{_number(dice, 0, 9)}%"


def _day(dice: Dice) -> str:
    return f"{_number(dice, 1, 12)}月{_number(dice, 1, 28)}日"


def _beside(dice: Dice) -> str:
    """A sentence that is not part of any headline."""
    return dice.choose(
        (
            f"记者{dice.choose(_DAYS)}从有关部门了解到上述消息",
            f"{company(dice)}{dice.choose(INDUSTRIES)}的股价{dice.choose(_DAYS)}收盘上涨{_percent(dice)}",
            f"当地居民{person(dice)}对记者表示十分关心此事",
            f"{dice.choose(CITIES)}去年同期也有{_number(dice, 2, 90)}起类似的消息",
            f"这条消息在网上引起了{_number(dice, 2, 90)}万人的讨论",
        )
    )


# Events


def _earthquake(dice: Dice) -> Event:
    place, day = dice.choose(PROVINCES), dice.choose(_DAYS)
    magnitude = f"{_number(dice, 3, 7)}.{_number(dice, 0, 9)}级"
    injured = _number(dice, 2, 99)
    known, short = dice.choose(
        ((f"已经造成{injured}人受伤", f" {injured}人受伤"), ("目前没有收到人员伤亡的报告", " 暂无伤亡"))
    )
    return Event(
        f"据地震台网测定,{day}在{place}境内发生{magnitude}地震,{known}",
        f"{place}{magnitude}地震{short}",
        f"震源深度为{_number(dice, 5, 60)}公里",
    )


def _results(dice: Dice) -> Event:
    name, quarter, rate = company(dice), dice.choose(_QUARTERS), _percent(dice)
    long, short = dice.choose((("增长", "增"), ("下降", "降")))
    what = dice.choose((("营业收入", "营收"), ("净利润", "净利")))
    return Event(
        f"{name}{dice.choose(INDUSTRIES)}{dice.choose(_DAYS)}公布的财务报告显示,公司{quarter}的{what[0]}为"
        f"{_number(dice, 2, 300)}亿元,同比{long}{rate}",
        f"{name}{quarter}{what[1]}{short}{rate}",
        f"公司董事长{person(dice)}表示对全年的经营充满信心",
    )


def _product(dice: Dice) -> Event:
    name, price = company(dice), _number(dice, 3, 99) * 100 - 1
    product = dice.choose(("手机", "平板电脑", "电视", "空调", "手表", "相机", "耳机", "机器人"))
    return Event(
        f"{name}{dice.choose(INDUSTRIES)}{dice.choose(_DAYS)}在{dice.choose(CITIES)}举行发布会,正式推出了一款新的{product},"
        f"起售价格为{price}元",
        f"{name}发布新{product} {price}元起",
        f"新产品将从{_day(dice)}开始销售",
    )


def _weather(dice: Dice) -> Event:
    city, degrees = dice.choose(CITIES), _number(dice, 2, 9)
    cause, weather, long, short = dice.choose(
        (
            ("冷空气", "大风", "下降", "降"),
            ("台风", "暴雨", "下降", "降"),
            ("暖空气", "晴天", "上升", "升"),
            ("寒潮", "大雪", "下降", "降"),
        )
    )
    return Event(
        f"气象台预计,受{cause}的影响,{city}在未来三天将会出现{weather},气温{long}{degrees}度左右",
        f"{city}将有{weather} {short}温{degrees}度",
        "专家提醒市民出门时注意安全",
    )


def _match(dice: Dice) -> Event:
    home, guest = dice.choose(CITIES) + dice.choose(ANIMALS[::2]), dice.choose(CITIES) + dice.choose(ANIMALS[1::2])
    goals = _number(dice, 1, 6)
    score = f"{goals}比{_number(dice, 0, goals - 1)}"
    long, short = dice.choose((("获得了冠军", "夺冠"), ("进入了决赛", "进决赛"), ("取得三连胜", "三连胜")))
    return Event(
        f"在{dice.choose(_DAYS)}进行的一场足球比赛中,{home}队以{score}战胜了{guest}队,{long}",
        f"{home}{score}胜{guest}{short}",
        f"{person(dice)}在第{_number(dice, 3, 90)}分钟的进球十分精彩",
    )


def _metro(dice: Dice) -> Event:
    city, line, day = dice.choose(CITIES), _number(dice, 1, 18), _day(dice)
    return Event(
        f"{city}市政府宣布,地铁{line}号线的建设已经完成,将于{day}正式开通运营",
        f"{city}地铁{line}号线{day}开通",
        f"这条线路全长{_number(dice, 12, 60)}公里,共设{_number(dice, 8, 30)}座车站",
    )


def _film(dice: Dice) -> Event:
    film = dice.choose(("春天的河", "归途", "海上明月", "老街", "追风的人", "山那边", "长夜", "金色河流"))
    director, gross = person(dice), _number(dice, 2, 900)
    return Event(
        f"由{director}担任导演的电影《{film}》{dice.choose(_DAYS)}在全国上映,第一天的票房收入达到{gross}万元",
        f"{director}《{film}》首日票房{gross}万",
        f"影片在{dice.choose(CITIES)}拍摄了{_number(dice, 3, 20)}个月",
    )


def _fire(dice: Dice) -> Event:
    city, saved = dice.choose(CITIES), _number(dice, 2, 60)
    place = dice.choose(("商场", "工厂", "仓库", "酒店", "居民楼", "学校", "餐厅"))
    return Event(
        f"{dice.choose(_DAYS)},{city}市的一家{place}突然发生火灾,消防人员赶到现场,救出了被困的{saved}人",
        f"{city}一{place}起火 {saved}人获救",
        f"起火的原因正在调查之中,{_number(dice, 3, 30)}辆消防车参加了救援",
    )


def _prices(dice: Dice) -> Event:
    thing = dice.choose(("汽油", "柴油", "猪肉", "蔬菜", "水果", "大米", "黄金", "住房"))
    place, rate = dice.choose((*CITIES, *PROVINCES)), _percent(dice)
    long, short = dice.choose((("上涨", "涨"), ("下跌", "跌")))
    month = _number(dice, 1, 12)
    return Event(
        f"统计部门{dice.choose(_DAYS)}发布的数据显示,{place}{month}月份的{thing}价格比上个月{long}了{rate}",
        f"{place}{month}月{thing}{short}{rate}",
        "分析人士认为,这与市场需求的变化有关",
    )


def _appointment(dice: Dice) -> Event:
    name, manager = company(dice), person(dice)
    industry = dice.choose(INDUSTRIES)
    long, short = dice.choose((("总经理", "总经理"), ("首席执行官", "CEO"), ("首席财务官", "CFO")))
    return Event(
        f"{name}{industry}{dice.choose(_DAYS)}发布公告,公司董事会已经同意聘任{manager}担任{long}的职务",
        f"{name}{industry}聘{manager}为{short}",
        f"他曾在{company(dice)}{dice.choose(INDUSTRIES)}工作{_number(dice, 3, 25)}年",
    )


EVENTS = (
    _earthquake, _results, _product, _weather, _match, _metro, _film, _fire, _prices, _appointment,
)  # fmt: skip
