"""The signs that red flags are made of, as patterns, and the flags made of them. Our own wording; no source's text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sign:
    """How a sign is said. ``at_rest``: it does not count with effort; ``unless``: nor where its clause says this."""

    pattern: re.Pattern[str]
    at_rest: bool = False
    unless: re.Pattern[str] | None = None


def _sign(english: str, chinese: str, at_rest: bool = False, unless: str = "") -> Sign:
    pattern = re.compile(f"(?:{english})|(?:{chinese})", re.IGNORECASE)
    return Sign(pattern, at_rest, re.compile(unless, re.IGNORECASE) if unless else None)


SIGNS: Mapping[str, Sign] = {
    "chest_pain": _sign(
        r"\bchest[- ]?(is |feels? |has )?(so |very |really )?(pains?|pressure|tight\w*|hurt\w*|heav\w+|ach\w+"
        r"|discomfort)"
        r"|\b(pain|pressure|tight\w*|weight|squeez\w+|crush\w+|elephant|heaviness)\b.{0,25}\b(chest|breastbone)\b",
        r"胸(口|部|前|骨后)?.{0,6}(痛|疼|闷|压|紧|憋)|心口.{0,4}(痛|疼)",
    ),
    "crushing": _sign(
        r"\b(crush\w*|elephant|vice|unbearable|tearing|ripping|stabbing|worst)\b"
        r"|\b(down|into|to) (my|his|her|the) (left )?(arm|jaw)\b"
        r"|cold sweat|sweating (badly|all over)|grey and sweaty",
        r"压榨|石头.{0,2}压|像.{0,6}压着|撕裂|剧烈|剧痛|受不了|放射到|左(胳膊|臂|肩)|冷汗|大汗",
    ),
    "breathless": _sign(
        r"\b(short(ness)? of breath|out of breath|breathless\w*|hard to breathe|trouble breathing|wheez\w*)\b",
        r"气短|气促|气喘|憋气|喘|呼吸困难|胸闷气",
    ),
    "cannot_breathe": _sign(
        r"\b(can'?t|cannot|can not|can hardly|can barely|unable to|hardly|struggl\w+ to|fighting to|gasping to"
        r"|too \w+ to) "
        r"(catch (my|his|her) breath|breathe|speak a sentence|talk in sentences)\b|\bgasping\b"
        r"|\blips (are|is|went|turning) blue\b|\bblue lips\b",
        r"喘不[上过]来?气|透不过气|上不来气|不能呼吸|无法呼吸|嘴唇(发紫|青紫|发青)|憋得(说不出话|脸发紫)"
        r"|呼吸非常困难|严重(气促|呼吸困难)",
        at_rest=True,
    ),
    "face": _sign(
        r"\b(face|mouth|smile)\b.{0,25}\b(droop\w*|hang\w*|lopsided|fallen|crooked|sagg\w*)\b"
        r"|\bdrooping (face|mouth)\b",
        r"(口角|嘴巴?|嘴角|脸|面部?).{0,4}(歪|斜|耷拉)",
    ),
    "limb": _sign(
        r"\b(one|left|right|whole) (side|arm|leg|half)\b.{0,25}\b(weak\w*|paraly\w+|can'?t (move|lift|feel)"
        r"|cannot (move|lift)"
        r"|won'?t (move|lift)|useless|limp|gone dead)\b"
        r"|\bsudden\w*\b.{0,30}\b(weak\w*|numb\w*)\b.{0,20}\b(arm|leg|side|face)\b"
        r"|\b(can'?t|cannot) (lift|raise|move) (my|his|her|the|one) (left |right )?(arm|leg)\b",
        r"(一侧|半边|半身|单侧|一边|一只|左|右)(边|侧|半身)?(的)?(身子|身体|手|胳膊|手臂|腿|脚|肢体)?.{0,4}"
        r"(无力|没力|没劲|不能动|动不了|不听使唤|抬不起|瘫)|(突然|一下子).{0,8}(半身|一侧|手脚|胳膊"
        r"|腿).{0,4}(麻|没知觉)|偏瘫",
        unless=r"\b(fell|sprain|twist|injur)\w*|摔|扭|拉伤",
    ),
    "speech": _sign(
        r"\bslurr\w*|\b(can'?t|cannot|unable to|suddenly) (speak|talk|find (his|her|my) words)\b"
        r"|\bspeech (is|has|went|became) (gone|odd|slurred|strange)"
        r"|\bwords (come|came) out (wrong|jumbled)|\btalking (nonsense|gibberish)",
        r"(说话|言语|讲话|口齿).{0,4}(不清|含糊|含混|大舌头|困难)|说不出话|不会说话",
        unless=r"\b(sore throat|hoarse|voice)\b|嗓|哑|喉咙",
    ),
    "unconscious": _sign(
        r"\b(unconscious|unresponsive|collaps\w+|passed out|faint(ed|s)|blacked out|knocked out)\b"
        r"|\b(won'?t|will not|can'?t|cannot|isn'?t|is not|not) (wake|waking|be woken|respond\w*)\b"
        r"|\b(not|stopped|isn'?t) breathing\b",
        r"昏迷|晕倒|昏倒|晕过去|昏过去|叫不醒|叫.{0,4}不醒|不省人事|没(有)?(呼吸|意识|反应|心跳)|失去意识"
        r"|意识不清|神志不清",
    ),
    "fit": _sign(
        r"\b(having|had|has|in) (a |an |another )?(fit|seizure|convulsion)s?\b|\bconvuls\w+|\bseizure\b"
        r"|\bfitting\b|\bshak\w+ all over and (foam|drool)\w*|\bfoam\w* at the mouth\b|\bfoaming\b",
        r"抽搐|惊厥|抽风|癫痫发作|羊癫疯|吐白沫|全身(在)?抽",
    ),
    "bleeding": _sign(
        r"\bbleed\w*\b.{0,25}\b(heavily|badly|a lot|gush\w*|spurt\w*|won'?t stop|can'?t stop|doesn'?t stop"
        r"|not stop\w*)\b"
        r"|\b(can'?t|cannot|won'?t|will not) stop (the )?bleeding\b|\b(gush|spurt|pour)\w* (with )?blood\b"
        r"|\bblood (is |was )?(gush|spurt|pour)\w*"
        r"|\b(vomit|cough|throw|bring|spit)\w* (up )?(fresh |bright |lots of |a lot of )?blood\b|\bheavy bleeding\b",
        r"血流不止|止不住血|血.{0,4}止不住|出血不止|大出血|大量(出血|流血|吐血)|喷血|吐血|呕血|咯血|大口.{0,3}血",
    ),
    "swelling": _sign(
        r"\b(tongue|lips?|throat|face)\b.{0,25}\b(swell\w*|swollen|closing|puff\w+ up)\b"
        r"|\b(swell\w*|swollen)\b.{0,25}\b(tongue|throat|lips?)\b",
        r"(嘴唇|舌头?|喉头?|喉咙|脸|面部).{0,6}(肿|水肿)",
    ),
    "allergen": _sign(
        r"\b(allerg\w+|hives|sting|stung|peanuts?|nuts|shellfish|penicillin|new (drug|medicine|antibiotic))\b",
        r"过敏|风团|荨麻疹|蜇|蛰|花生|海鲜|虾|青霉素|打完针|输液后",
    ),
    "severe_allergy": _sign(r"\banaphyla\w+|\bsevere allergic\b"
        r"|\bthroat (is )?closing\b", r"过敏性休克|严重过敏|喉头水肿"),
    "overdose": _sign(
        r"\boverdos\w+|\b(took|taken|swallow\w*|drank|drunk|ate|eaten)\b.{0,30}\b(too many|a whole (box|bottle"
        r"|packet)|bleach|batter(y|ies)"
        r"|poison\w*|cleaner|acid|petrol|antifreeze|detergent|pesticide|weedkiller|button)\b|\bpoison(ed"
        r"|ing)\b|\bcarbon monoxide\b"
        r"|\b(child|toddler|baby|son|daughter)\b.{0,20}\b(swallowed|ate|took)\b.{0,30}\b(pills?|tablets?"
        r"|medicine|coin|magnet)",
        r"过量服|服药过量|药(吃|服)过量|吃多了.{0,4}药|吃了.{0,4}(整|一)(瓶|盒).{0,4}药|误服|误食|误吞"
        r"|吞了?.{0,4}(电池|硬币|磁)"
        r"|中毒|喝了?.{0,3}(农药|洁厕|消毒液|漂白)|煤气中毒|闻到煤气|一氧化碳",
    ),
    "young_baby": _sign(
        r"\b(\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven)[- ](days?|weeks?)[- ]old\b"
        r"|\bnew ?born\b"
        r"|\b(one|two|1|2)[- ]months?[- ]old\b|\bunder three months\b",
        r"新生儿|刚出生|出生.{0,4}(天|周)|未满月|没满月|刚满月"
        r"|([\d一二两三四五六七八九十]+)(天|周|个?星期|个礼拜)大的?(宝宝|婴儿|孩子|娃|女儿|儿子)?"
        r"|(一|两|二|1|2)个半?月大?的?(宝宝|婴儿|孩子|娃|女儿|儿子|小孩)"
        r"|(宝宝|婴儿|孩子|娃|女儿|儿子)(才|刚|只有)?(一|两|二|1|2)个半?月",
    ),
    "fever": _sign(
        r"\b(fever\w*|temperature|(feels?|is|was) (so |very |really )?hot|burning up|38(\.\d)?|39(\.\d)?"
        r"|40(\.\d)?|hot to the touch)\b",
        r"发烧|发热|高烧|体温(3[89]|40)|(三十)?(38|39|40)度?|三十[八九]",
    ),
    "worst_headache": _sign(
        r"\b(sudden\w*|worst|thunderclap|out of nowhere|explo\w+|blinding)\b.{0,35}\bhead(ache)?s?\b"
        r"|\bhead(ache)?\b.{0,30}\b(suddenly|worst (of|in|ever)|like (a|being) (blow|thunder\w*|hit|explo\w*))",
        r"(突然|一下子|突发|炸裂|雷击|撕裂|从没.{0,4}这么|从来没).{0,10}头.{0,4}(痛|疼)"
        r"|头(突然)?.{0,4}(痛|疼).{0,10}(炸|欲裂|裂开|从来没|从没|剧烈)|剧烈.{0,2}头(痛|疼)",
    ),
    "stiff_neck": _sign(r"\bstiff neck\b|\bneck (is |feels )?(so "
        r"|very )?stiff\b", r"脖子(发)?(硬|僵)|颈(部)?(强直|僵硬|发硬)"),
    "headache": _sign(r"\bhead(ache)?s?\b", r"头.{0,2}(痛|疼)"),
    "blotches": _sign(r"\brash\b.{0,30}\b(doesn'?t|does not|won'?t|not) fade\b"
        r"|\bpurple (spots|rash|blotches)\b", r"(紫色|出血性).{0,3}(斑|点|疹)|压之不褪"),
    "pregnant": _sign(
        r"\bpregnan\w+|\b(weeks|months) (along|gone)\b"
        r"|\bexpecting\b", r"怀孕|孕(\d|[一二三四五六七八九十])|孕妇|孕期|怀着|身孕|胎儿|有身子"
    ),
    "any_bleeding": _sign(
        r"\bbleed\w*|\bblood\b",
        r"出血|流血|见红|下身.{0,3}血|阴道.{0,3}血",
        unless=r"\bblood (pressure|test|sugar|group)\b|血压|血糖",
    ),
    "severe_belly": _sign(
        r"\b(severe|unbearable|agonising|terrible|awful|worst)\b.{0,20}\b(belly|stomach|abdominal|tummy)\b"
        r"|\b(belly|stomach|tummy) (is )?(hard as|rigid)",
        r"(肚子|腹).{0,3}(剧痛|剧烈|痛得打滚|疼得打滚|硬得像板)|剧烈腹痛",
    ),
    "injury": _sign(
        r"\b(hit|run over|knocked down) by a (car|bus|lorry|truck|train|van|motorbike)\b"
        r"|\bfell (off|from) (a |the )?(roof|ladder|height|window|balcony|scaffold\w*)"
        r"|\b(been |was |got )?(stabbed|shot|electrocuted)\b|\bbone (is )?(sticking|poking) out\b"
        r"|\b(scald|burn)\w*\b.{0,25}\b(whole|large|all over|badly|face)\b",
        r"被(车|汽车|货车|摩托车|电动车)撞|刚出(了)?车祸|从.{0,6}(楼|梯子|屋顶|高处|脚手架|树)上?.{0,3}(摔|掉"
        r"|坠)|刀(伤|捅)|被捅|骨头.{0,3}(露|戳)出|触电"
        r"|大面积(烧伤|烫伤)|(全身|整个|整条).{0,6}(烫|烧)伤",
    ),
    "sight_lost": _sign(
        r"\bsudden\w*\b.{0,20}\b(blind|can'?t see|cannot see|lost (my |his |her )?(sight|vision))"
        r"|\bwent blind\b|\blost (the )?sight (in|of)\b.{0,20}\b(today|suddenly|now)",
        r"突然.{0,6}(看不见|失明|瞎)|(一只|左|右)眼.{0,4}突然.{0,4}(黑|看不)",
    ),
    "testicle": _sign(
        r"\b(sudden\w*|severe|unbearable)\b.{0,30}\b(testic\w+|balls?|scrotum)\b"
        r"|\b(testic\w+|scrotum)\b.{0,20}\bsudden\w*",
        r"睾丸.{0,6}(突然|剧烈|剧痛)|突然.{0,4}睾丸",
    ),
}  # fmt: skip

# Flag -> the sets of signs that make it, the most telling first.
FLAGS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "chest_pain": (("chest_pain", "crushing"), ("chest_pain", "cannot_breathe"), ("chest_pain", "breathless"),
                   ("chest_pain", "unconscious")),
    "breathing": (("cannot_breathe",),),
    "stroke": (("face",), ("limb",), ("speech",)),
    "unconscious": (("unconscious",),),
    "fit": (("fit",),),
    "bleeding": (("bleeding",),),
    "allergy": (("severe_allergy",), ("swelling", "allergen"), ("swelling", "breathless"),
                ("swelling", "cannot_breathe")),
    "poisoning": (("overdose",),),
    "young_baby": (("young_baby", "fever"),),
    "headache": (("worst_headache",), ("stiff_neck", "headache"), ("stiff_neck", "fever"), ("blotches", "fever")),
    "pregnancy": (("pregnant", "any_bleeding"), ("pregnant", "severe_belly"), ("pregnant", "worst_headache")),
    "belly": (("severe_belly",),),
    "injury": (("injury",),),
    "sight": (("sight_lost",),),
    "testicle": (("testicle",),),
}  # fmt: skip
NAMES: Mapping[str, Mapping[str, str]] = {
    "chest_pain": {"en": "chest pain with another warning sign", "zh": "胸痛并伴有其他警示表现"},
    "breathing": {"en": "severe trouble breathing", "zh": "严重呼吸困难"},
    "stroke": {"en": "a drooping face, a weak limb or failing speech", "zh": "口角歪斜、肢体无力或言语不清"},
    "unconscious": {"en": "collapse or loss of consciousness", "zh": "昏倒或失去意识"},
    "fit": {"en": "a fit", "zh": "抽搐"},
    "bleeding": {"en": "heavy bleeding", "zh": "大量出血"},
    "allergy": {"en": "signs of a severe allergic reaction", "zh": "严重过敏的表现"},
    "poisoning": {"en": "poisoning, an overdose or something swallowed", "zh": "中毒、服药过量或误服"},
    "young_baby": {"en": "fever in a baby under three months", "zh": "三个月以下婴儿发热"},
    "headache": {"en": "a sudden severe headache, or a stiff neck or purple spots with fever",
                 "zh": "突发剧烈头痛，或颈部僵硬、紫斑伴发热"},
    "pregnancy": {"en": "a warning sign in pregnancy", "zh": "孕期警示表现"},
    "belly": {"en": "severe belly pain", "zh": "剧烈腹痛"},
    "injury": {"en": "a serious injury or burn", "zh": "严重外伤或烧烫伤"},
    "sight": {"en": "sudden loss of sight", "zh": "突然失明"},
    "testicle": {"en": "sudden severe pain in a testicle", "zh": "睾丸突发剧痛"},
}  # fmt: skip
