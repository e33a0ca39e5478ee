"""Names and places in the invented news."""

from fairseq_capsule_lab.corpora.dice import Dice

CITIES = (
    "北京 上海 广州 深圳 天津 重庆 成都 杭州 南京 武汉 西安 长沙 郑州 青岛 大连 厦门 宁波 苏州 无锡 合肥 福州 济南 "
    "沈阳 哈尔滨 长春 昆明 贵阳 南宁 海口 兰州 银川 西宁 太原 南昌 拉萨 石家庄 呼和浩特 乌鲁木齐"
).split()
PROVINCES = (
    "四川 云南 甘肃 青海 新疆 西藏 河北 山西 陕西 广东 福建 浙江 江苏 山东 湖南 湖北 江西 安徽 贵州 黑龙江"
).split()
ANIMALS = "雄狮 猛虎 飞鹰 海豚 黑豹 骏马 白熊 火龙 金牛 蓝鲸".split()
INDUSTRIES = "科技 汽车 电器 能源 医药 食品 通信 航空 地产 服装 软件 钢铁".split()
_FIRST = "岚 琅 沐 澄 翰 昱 瑾 颢 棠 霁 煜 珩 筠 墨 羽".split()  # not names of known companies
_SECOND = "峤 泽 禾 川 岭 舟 野 原 谷 桥 溪 石 松 帆 庭".split()
_SURNAMES = "王 李 张 刘 陈 杨 黄 赵 周 吴 徐 孙 马 朱 胡 林 郭 何 高 罗".split()
_GIVEN = "伟 芳 娜 敏 静 丽 强 磊 军 洋 勇 艳 杰 涛 明 超 霞 平 刚 文 华 玉 建 国 志 春 晓 雪 海 云".split()


def company(dice: Dice) -> str:
    """A company name without the industry: 华兴."""
    return dice.choose(_FIRST) + dice.choose(_SECOND)


def person(dice: Dice) -> str:
    given = "".join(dice.choose(_GIVEN) for _ in range(1 + dice.chance(0.7)))
    return dice.choose(_SURNAMES) + given
