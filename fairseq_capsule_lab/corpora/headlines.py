"""The embedded corpus of Chinese news with headlines: scripts/prepare-headlines.sh.

A text has two or three sentences. One sentence tells the event. The other sentences, before or after it, are about
something else and have other numbers and names. The headline states who, what and how much of the event in fewer
characters, and leaves out the rest. A model has to find the event, copy names and numbers, and learn the short words
for the long words.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fairseq_capsule_lab.corpora import filters
from fairseq_capsule_lab.corpora.help_texts import RESUMES
from fairseq_capsule_lab.corpora.recipe import Recipe
from fairseq_capsule_lab.corpora.splits import Dice
from fairseq_capsule_lab.corpora.toy import recipe as toy

_ANIMALS = "雄狮 猛虎 飞鹰 海豚 黑豹 骏马 白熊 火龙 金牛 蓝鲸".split()
WORDS = {
    "city": (
        "北京 上海 广州 深圳 天津 重庆 成都 杭州 南京 武汉 西安 长沙 郑州 青岛 大连 厦门 宁波 苏州 无锡 合肥 福州 济南 "
        "沈阳 哈尔滨 长春 昆明 贵阳 南宁 海口 兰州 银川 西宁 太原 南昌 拉萨 石家庄 呼和浩特 乌鲁木齐"
    ).split(),
    "province": (
        "四川 云南 甘肃 青海 新疆 西藏 河北 山西 陕西 广东 福建 浙江 江苏 山东 湖南 湖北 江西 安徽 贵州 黑龙江"
    ).split(),
    "industry": "科技 汽车 电器 能源 医药 食品 通信 航空 地产 服装 软件 钢铁".split(),
    "day": "今天 昨天 本周一 本周三 本周五 上周末".split(),
    "quarter": "第一季度 第二季度 第三季度 第四季度".split(),
    "home": _ANIMALS[::2],
    "guest": _ANIMALS[1::2],
    # The two characters of a company: not names of known ones.
    "first": "岚 琅 沐 澄 翰 昱 瑾 颢 棠 霁 煜 珩 筠 墨 羽".split(),
    "second": "峤 泽 禾 川 岭 舟 野 原 谷 桥 溪 石 松 帆 庭".split(),
    "product": "手机 平板电脑 电视 空调 手表 相机 耳机 机器人".split(),
    "price": [str(100 * hundreds - 1) for hundreds in range(3, 100)],
    "film": "春天的河 归途 海上明月 老街 追风的人 山那边 长夜 金色河流".split(),
    "building": "商场 工厂 仓库 酒店 居民楼 学校 餐厅".split(),
    "goods": "汽油 柴油 猪肉 蔬菜 水果 大米 黄金 住房".split(),
}
WORDS["place"] = WORDS["city"] + WORDS["province"]
SURNAMES = "王 李 张 刘 陈 杨 黄 赵 周 吴 徐 孙 马 朱 胡 林 郭 何 高 罗".split()
NAMES = "伟 芳 娜 敏 静 丽 强 磊 军 洋 勇 艳 杰 涛 明 超 霞 平 刚 文 华 玉 建 国 志 春 晓 雪 海 云".split()
PHRASES = {"company": "{first}{second}", "percent": "{1-49}.{0-9}%", "date": "{1-12}月{1-28}日"}
_SLOT = re.compile(r"{(\w+?)(?:([-<])(\w+))?}")


class Event(NamedTuple):
    """An event, as templates. `{2-9}` is a number, `{city}` a word or a phrase; or else what was drawn for the name.

    Attributes:
        draws: what is drawn first, in this order: `name=template`; or only `city`, which is `city={city}`. Several
            alternatives are `long short=获得了冠军/夺冠|进入了决赛/进决赛`.
        text: its sentence, without the full stop.
        aside: a sentence that may stand beside it.
    """

    draws: str
    text: str
    headline: str
    aside: str


EVENTS = (
    Event(
        "place={province}; day; magnitude={3-7}.{0-9}级; injured={2-99}; "
        "known short=已经造成{injured}人受伤/ {injured}人受伤|目前没有收到人员伤亡的报告/ 暂无伤亡",
        "据地震台网测定,{day}在{place}境内发生{magnitude}地震,{known}",
        "{place}{magnitude}地震{short}",
        "震源深度为{5-60}公里",
    ),
    Event(
        "company; quarter; rate={percent}; long short=增长/增|下降/降; figure brief=营业收入/营收|净利润/净利",
        "{company}{industry}{day}公布的财务报告显示,公司{quarter}的{figure}为{2-300}亿元,同比{long}{rate}",
        "{company}{quarter}{brief}{short}{rate}",
        "公司董事长{person}表示对全年的经营充满信心",
    ),
    Event(
        "company; price; product",
        "{company}{industry}{day}在{city}举行发布会,正式推出了一款新的{product},起售价格为{price}元",
        "{company}发布新{product} {price}元起",
        "新产品将从{date}开始销售",
    ),
    Event(
        "city; degrees={2-9}; "
        "cause weather long short=冷空气/大风/下降/降|台风/暴雨/下降/降|暖空气/晴天/上升/升|寒潮/大雪/下降/降",
        "气象台预计,受{cause}的影响,{city}在未来三天将会出现{weather},气温{long}{degrees}度左右",
        "{city}将有{weather} {short}温{degrees}度",
        "专家提醒市民出门时注意安全",
    ),
    Event(
        "home={city}{home}; guest={city}{guest}; goals={1-6}; score={goals}比{0<goals}; "
        "long short=获得了冠军/夺冠|进入了决赛/进决赛|取得三连胜/三连胜",
        "在{day}进行的一场足球比赛中,{home}队以{score}战胜了{guest}队,{long}",
        "{home}{score}胜{guest}{short}",
        "{person}在第{3-90}分钟的进球十分精彩",
    ),
    Event(
        "city; line={1-18}; date",
        "{city}市政府宣布,地铁{line}号线的建设已经完成,将于{date}正式开通运营",
        "{city}地铁{line}号线{date}开通",
        "这条线路全长{12-60}公里,共设{8-30}座车站",
    ),
    Event(
        "film; director={person}; gross={2-900}",
        "由{director}担任导演的电影《{film}》{day}在全国上映,第一天的票房收入达到{gross}万元",
        "{director}《{film}》首日票房{gross}万",
        "影片在{city}拍摄了{3-20}个月",
    ),
    Event(
        "city; saved={2-60}; building",
        "{day},{city}市的一家{building}突然发生火灾,消防人员赶到现场,救出了被困的{saved}人",
        "{city}一{building}起火 {saved}人获救",
        "起火的原因正在调查之中,{3-30}辆消防车参加了救援",
    ),
    Event(
        "goods; place; rate={percent}; long short=上涨/涨|下跌/跌; month={1-12}",
        "统计部门{day}发布的数据显示,{place}{month}月份的{goods}价格比上个月{long}了{rate}",
        "{place}{month}月{goods}{short}{rate}",
        "分析人士认为,这与市场需求的变化有关",
    ),
    Event(
        "name={company}; manager={person}; branch={industry}; long short=总经理/总经理|首席执行官/CEO|首席财务官/CFO",
        "{name}{branch}{day}发布公告,公司董事会已经同意聘任{manager}担任{long}的职务",
        "{name}{branch}聘{manager}为{short}",
        "他曾在{company}{industry}工作{3-25}年",
    ),
)
# Sentences that are part of no headline.
BESIDE = (
    "记者{day}从有关部门了解到上述消息",
    "{company}{industry}的股价{day}收盘上涨{percent}",
    "当地居民{person}对记者表示十分关心此事",
    "{city}去年同期也有{2-90}起类似的消息",
    "这条消息在网上引起了{2-90}万人的讨论",
)


@functools.cache
def _alternatives(draws: str) -> list[tuple[list[str], list[list[str]]]]:
    """Return the names of each draw, and the templates of each of its alternatives."""
    entries = (entry.partition("=") for entry in draws.split("; "))
    named = ((names, templates or f"{{{names}}}") for names, _, templates in entries)
    return [(names.split(), [one.split("/") for one in templates.split("|")]) for names, templates in named]


_pieces = functools.cache(_SLOT.split)  # of a template: text, and the three groups of each slot


def _fill(template: str, dice: Dice, values: Mapping[str, str]) -> str:
    """Return a template with words and numbers. `values` are those of names that were drawn before."""
    text, *slots = _pieces(template)
    for name, kind, last, after in zip(slots[::4], slots[1::4], slots[2::4], slots[3::4]):
        if name in values:
            text += values[name]
        elif name in WORDS:
            text += dice.choose(WORDS[name])
        elif kind:
            most = int(values.get(last, last)) - (kind == "<")
            text += str(int(name) + dice.choose(range(most - int(name) + 1)))
        elif name in PHRASES:
            text += _fill(PHRASES[name], dice, {})
        else:
            assert name == "person"
            names = "".join(dice.choose(NAMES) for _ in range(1 + dice.chance(0.7)))
            text += dice.choose(SURNAMES) + names
        text += after
    return text


def article_pairs(seed: int) -> Iterator[tuple[str, str]]:
    """An infinite sequence of (text, headline) pairs, the same for a seed."""
    dice = Dice(seed)
    while True:
        event, values = dice.choose(EVENTS), dict[str, str]()
        for names, alternatives in _alternatives(event.draws):
            templates = dice.choose(alternatives) if len(alternatives) > 1 else alternatives[0]
            values.update({name: _fill(template, dice, values) for name, template in zip(names, templates)})
        text, headline, aside = (_fill(template, dice, values) for template in event[1:])
        sentences = [text]
        if dice.chance(0.6):
            sentences.append(aside)
        if len(sentences) == 1 or dice.chance(0.4):
            place = dice.choose((0, len(sentences)))
            sentences.insert(place, dice.choose([_fill(template, dice, {}) for template in BESIDE]))
        yield "。".join(sentences) + "。", headline


HEADLINES = Recipe(
    script="prepare-headlines.sh",
    help=f"""\
Generate the embedded summarisation corpus, short Chinese news with headlines, and binarise it for fairseq, in OUT/bin.
Nothing is downloaded.

    prepare-headlines.sh [--train N] [--valid N] [--test N] [--seed N] OUT

  --train N, --valid N, --test N
                 pairs of each split (30,000, 500 and 500)
  --seed N       seed of the corpus (1)

The tokens are characters. Source and target are called `text` and `summary` and share a dictionary.

  OUT/bin        binarised: train, valid, test
  OUT/raw        the generated text and references for ROUGE; OUT/characters: its next stage
  OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts, hashes

{RESUMES}""",
    languages=("text", "summary"),
    options=toy.OPTIONS,
    raw=functools.partial(toy.write_drawn, pairs=article_pairs),
    filters=lambda options: [filters.spell],
    defaults={**toy.SIZES, "seed": "1", "vocabulary": "3500"},
    check=toy.require_sizes,
)
